//! The long hop as the settings describe it: a named profile, with what is set besides over it. Pure.

use farhop_orbit::Profile;
use farhop_settings::common::LinkSettings;
use farhop_transport::path::{End, PathPlan};

use crate::error::GroundError;

/// The plan that carriers are sized for.
///
/// # Errors
/// There is no such profile, or no rate for a controller that needs one.
pub(crate) fn path_plan(link: &LinkSettings) -> Result<PathPlan, GroundError> {
    let plan = if link.is_measured() {
        PathPlan::UNKNOWN
    } else {
        PathPlan::for_profile(&Profile::named(&link.profile).map_err(GroundError::Profile)?)
    };
    let plan = plan.with_repair(link.repair());
    let plan = plan.refined(link.round_trip, link.forward_rate, link.return_rate);
    Ok(plan.driven_by(link.congestion, End::Ground)?)
}

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
    let profile = Profile::named(&link.profile).map_err(|error| GroundError::Profile(error.to_string()))?;
    let plan = PathPlan::for_profile(&profile).with_repair(link.repair());
    let plan = plan.refined(link.round_trip, link.forward_rate, link.return_rate);
    Ok(plan.driven_by(link.congestion, End::Ground)?)
}

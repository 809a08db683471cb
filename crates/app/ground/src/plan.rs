//! The long hop as the settings describe it: a named profile, with what is set besides over it. Pure.

use farhop_settings::common::LinkSettings;
use farhop_transport::path::PathPlan;

/// The plan that carriers of either end are sized for.
pub fn path_plan(link: &LinkSettings) -> PathPlan {
    link.profile
        .as_ref()
        .map_or(PathPlan::UNKNOWN, PathPlan::for_profile)
        .with_repair(link.repair())
        .refined(link.round_trip, link.forward_rate, link.return_rate)
        .driven_by(link.congestion)
}

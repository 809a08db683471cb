//! The long hop as the settings describe it: a named profile, with what is set besides over it.

use anyhow::{Context, anyhow};
use farhop_orbit::Profile;
use farhop_settings::common::LinkSettings;
use farhop_transport::path::{End, PathPlan};

/// The plan that a carrier of `end` is sized for.
pub(crate) fn path_plan(link: &LinkSettings, end: End) -> anyhow::Result<PathPlan> {
    let plan = if link.is_measured() { PathPlan::UNKNOWN } else { PathPlan::for_profile(&profile(link)?) };
    let plan = plan.with_repair(link.repair());
    let plan = plan.refined(link.round_trip, link.forward_rate, link.return_rate);
    plan.driven_by(link.congestion, end).context("link.congestion")
}

/// The link that settings name.
fn profile(link: &LinkSettings) -> anyhow::Result<Profile> {
    Profile::named(&link.profile).map_err(|error| anyhow!("link.profile: {error}, and auto, which measures"))
}

/// A number that no earlier process of this end had.
pub(crate) fn epoch() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

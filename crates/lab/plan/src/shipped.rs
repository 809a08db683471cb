//! The plans that come with Farhop, and the satellites that they name.

use std::path::Path;

use crate::error::PlanError;

/// Name and text of each file of a folder of `docs/experiments`.
macro_rules! along {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../docs/experiments/", $folder, "/", $name, ".toml")))),*]
    };
}

/// Name and text of each plan.
pub const SHIPPED: &[(&str, &str)] = along!("plans":
    "httpep-5-6" "httpep-7" "httpep-8" "httpep-9" "httpep-10"
    "bacopt-3-4" "loader" "peers" "terminals" "users"
    "satnex-1" "satnex-6" "satnex-6-rtt" "satnex-9" "satnex-9-128k" "satnex-11" "satnex-push" "satnex-upload"
    "http2-2-3" "http2-4a" "http2-4b" "http2-table-1" "http2-5" "http2-limits"
);

/// Name and text of each satellite.
const LINKS: &[(&str, &str)] = along!("links": "bod-cra" "bod-rbdc" "bod-vbdc" "bod-rbdc-vbdc" "bod-cra-vbdc" "bod-shared" "bod-shared-5" "bod-shared-20");

/// The text of the plan of this name.
///
/// # Errors
/// There is none.
pub fn shipped(name: &str) -> Result<&'static str, PlanError> {
    let found = SHIPPED.iter().find(|(known, _)| *known == name);
    let known = || SHIPPED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(|(_, text)| *text).ok_or_else(|| PlanError::Unknown { name: name.to_owned(), known: known() })
}

/// The text of the satellite that a plan of Farhop's own names by this path.
///
/// # Errors
/// There is none, in words.
pub(crate) fn shipped_link(path: &Path) -> Result<&'static str, String> {
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let found = LINKS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| format!("no satellite {} comes along", path.display()))
}

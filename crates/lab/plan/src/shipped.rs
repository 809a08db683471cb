//! The plans that come with Farhop.

use crate::error::PlanError;

/// Name and text of each.
pub const SHIPPED: [(&str, &str); 5] = [
    ("httpep-5-6", include_str!("../../../../docs/experiments/plans/httpep-5-6.toml")),
    ("httpep-7", include_str!("../../../../docs/experiments/plans/httpep-7.toml")),
    ("httpep-8", include_str!("../../../../docs/experiments/plans/httpep-8.toml")),
    ("satnex-1", include_str!("../../../../docs/experiments/plans/satnex-1.toml")),
    ("http2-4a", include_str!("../../../../docs/experiments/plans/http2-4a.toml")),
];

/// The text of the plan of this name.
///
/// # Errors
/// There is none.
pub fn shipped(name: &str) -> Result<&'static str, PlanError> {
    let found = SHIPPED.iter().find(|(known, _)| *known == name);
    let known = || SHIPPED.map(|(name, _)| name).join(", ");
    found.map(|(_, text)| *text).ok_or_else(|| PlanError::Unknown { name: name.to_owned(), known: known() })
}

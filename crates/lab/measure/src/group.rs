//! Rows that are measured together, and what they are given.

use farhop_compare::Interrupt;

use crate::{MeasureError, Row};

/// What every group is given.
pub(crate) struct Context {
    /// Whether the user wants it to end.
    pub(crate) interrupt: Interrupt,
    /// Loads of each page through each variant; none leaves it to the group.
    pub(crate) runs: Option<u32>,
}

/// Rows that are measured together.
pub(crate) struct Group {
    /// Its name, for `--only`.
    pub(crate) name: &'static str,
    /// Measures it.
    pub(crate) measure: fn(&Context) -> Result<Vec<Row>, MeasureError>,
}

/// The groups of a part; none for a part that does not exist.
pub(crate) fn groups(part: &str) -> Option<&'static [Group]> {
    match part {
        "1" => Some(&crate::part1::GROUPS),
        "2" => Some(&crate::part2::GROUPS),
        "3" => Some(&crate::part3::GROUPS),
        "4" => Some(&crate::part4::GROUPS),
        _ => None,
    }
}

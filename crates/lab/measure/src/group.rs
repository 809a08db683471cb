//! Rows that are measured together, and what they are given.

use farhop_compare::{Interrupt, Peers};

use crate::{MeasureError, Row};

/// What every group is given.
pub(crate) struct Context {
    /// Whether the user wants it to end.
    pub(crate) interrupt: Interrupt,
    /// Loads of each page through each variant; none leaves it to the group.
    pub(crate) runs: Option<u32>,
    /// Programs of others to be measured beside.
    pub(crate) peers: Peers,
}

/// Rows that are measured together.
pub(crate) struct Group {
    /// Its name, for `--only`.
    pub(crate) name: &'static str,
    /// Measures it.
    pub(crate) measure: fn(&Context) -> Result<Vec<Row>, MeasureError>,
}

/// The parts whose bounds are measured.
pub(crate) const PARTS: [&str; 7] = ["1", "2", "3", "4", "5", "6", "7"];

/// The groups of a part; none for a part that does not exist.
pub(crate) fn groups(part: &str) -> Option<&'static [Group]> {
    match part {
        "1" => Some(&crate::part1::GROUPS),
        "2" => Some(&crate::part2::GROUPS),
        "3" => Some(&crate::part3::GROUPS),
        "4" => Some(&crate::part4::GROUPS),
        "5" => Some(&crate::part5::GROUPS),
        "6" => Some(&crate::part6::GROUPS),
        "7" => Some(&crate::part7::GROUPS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_help_of_only_names_every_group() {
        use clap::Args as _;
        let command = crate::MeasureArguments::augment_args(clap::Command::new("measure"));
        let only = command.get_arguments().find(|argument| argument.get_id() == "only").unwrap();
        let help = only.get_help().unwrap().to_string();
        for part in super::PARTS {
            for group in super::groups(part).unwrap() {
                let word = group.name.split(' ').next().unwrap();
                assert!(help.contains(word), "part {part}: {}", group.name);
            }
        }
        assert!(super::groups("0").is_none());
    }
}

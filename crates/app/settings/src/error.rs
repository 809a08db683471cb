//! What can be wrong with settings, each in one line: what, where, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use crate::end::End;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A line of a settings file, counted from 1.
    File {
        /// The file as it was named.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A settings file as a whole: what is missing has no line.
    Whole(PathBuf),
    /// A `--set` argument, as it was given.
    Argument(String),
    /// Nowhere: there is no file, and no argument gave it.
    Default,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line } => write!(f, "{}:{line}", path.display()),
            Place::Whole(path) => write!(f, "{}", path.display()),
            Place::Argument(text) => write!(f, "--set {}", one_line(text)),
            Place::Default => write!(f, "no settings file"),
        }
    }
}

/// Text of others within a line of ours: what would break the line is escaped.
pub(crate) fn one_line(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(escape).collect()
}

fn meant(nearest: Option<&str>) -> String {
    let none = || "`farhop check --reference` names those that there are".into();
    nearest.map_or_else(none, |nearest| format!("did you mean {nearest}?"))
}

/// Why settings were refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be opened or is not UTF-8.
    #[error("{}: cannot read settings; name a file that exists, or start one with `farhop check --sample`", path.display())]
    Unreadable {
        /// The file as it was named.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{place}: not TOML ({reason}); mend that line")]
    Syntax {
        /// Where.
        place: Place,
        /// What the TOML parser expected.
        reason: String,
    },
    /// No setting has this name.
    #[error("{place}: unknown setting {key}; {}", meant(nearest.as_deref()))]
    Unknown {
        /// Where.
        place: Place,
        /// The name as written.
        key: String,
        /// The setting that was likely meant, if one is near.
        nearest: Option<String>,
    },
    /// Another end has a setting of this name: the file is likely that end's.
    #[error(
        "{place}: {key} is a setting of `{}`, not of `{}`; set it there, or start that with this file",
        theirs.command(),
        ours.command()
    )]
    OtherEnd {
        /// Where.
        place: Place,
        /// The name as written.
        key: String,
        /// Whose setting it is.
        theirs: End,
        /// Whose settings are read.
        ours: End,
    },
    /// The value cannot be read as the setting's type or is outside its range.
    #[error("{place}: {key}: {reason}")]
    Value {
        /// Where.
        place: Place,
        /// The setting.
        key: String,
        /// What is wrong and how it is written.
        reason: String,
    },
    /// A setting without default was not given.
    #[error("{place}: {key} is missing; add it ({doc})")]
    Missing {
        /// The table in which it is missing.
        place: Place,
        /// The setting.
        key: String,
        /// First sentence of its documentation.
        doc: String,
    },
    /// Each value is good, but not together.
    #[error("{place}: {reason}")]
    Conflict {
        /// Where.
        place: Place,
        /// What contradicts what, and what to do.
        reason: String,
    },
}

impl SettingsError {
    /// Whether the command line is at fault, not a file: the exit code of a usage error is another.
    pub fn is_usage(&self) -> bool {
        match self {
            SettingsError::Unreadable { .. } => false,
            SettingsError::Syntax { place, .. }
            | SettingsError::Unknown { place, .. }
            | SettingsError::OtherEnd { place, .. }
            | SettingsError::Value { place, .. }
            | SettingsError::Missing { place, .. }
            | SettingsError::Conflict { place, .. } => matches!(place, Place::Argument(_)),
        }
    }
}

//! Tells from a settings file whose settings they are.

use std::path::Path;

use crate::error::{Place, SettingsError};

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// `farhop remote`: it names grounds.
    Remote,
    /// `farhop ground`: it names remotes.
    Ground,
    /// `farhop local`: it has a table for each end.
    Local,
    /// `farhop link`: it names a device.
    LinkManager,
}

impl End {
    /// How it is started.
    pub const fn command(self) -> &'static str {
        match self {
            End::Remote => "farhop remote",
            End::Ground => "farhop ground",
            End::Local => "farhop local",
            End::LinkManager => "farhop link",
        }
    }
}

/// Reads `file` just far enough to see whose settings it holds.
///
/// # Errors
/// The file cannot be read, is not TOML, or has neither peers nor a table for each end.
pub fn end_of(file: &Path) -> Result<End, SettingsError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| SettingsError::Unreadable { path: file.into(), source })?;
    // For its errors: they name the line.
    crate::source::Source::from_toml(&text, file)?;
    tell(&text).ok_or_else(|| SettingsError::Conflict {
        place: Place::Whole(file.into()),
        reason: "cannot tell whose settings these are; add [[ground]] (for a remote) or [[remote]] (for a ground), \
                 or say --as remote, ground, local or link"
            .into(),
    })
}

fn tell(text: &str) -> Option<End> {
    let document = toml_edit::Document::parse(text).ok()?;
    let is_list = |name| document.get(name).is_some_and(|item| item.is_array_of_tables() || item.is_array());
    let is_table = |name| document.get(name).is_some_and(toml_edit::Item::is_table_like);
    if is_list("ground") {
        Some(End::Remote)
    } else if is_list("remote") {
        Some(End::Ground)
    } else if document.contains_key("interface") {
        Some(End::LinkManager)
    } else if is_table("remote") || is_table("ground") {
        Some(End::Local)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_and_tables_tell_whose_settings_they_are() {
        assert_eq!(tell("[[ground]]\nname = 'x'"), Some(End::Remote));
        assert_eq!(tell("ground = [{name = 'x'}]"), Some(End::Remote));
        assert_eq!(tell("[[remote]]\nname = 'x'"), Some(End::Ground));
        assert_eq!(tell("[remote.link]\nprofile = 'none'"), Some(End::Local));
        assert_eq!(tell("interface = 'sat0'"), Some(End::LinkManager));
        assert_eq!(tell("[link]\nprofile = 'none'"), None);
    }
}

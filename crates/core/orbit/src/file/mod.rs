//! A satellite as a readable TOML file. The forms that serde fills are in `form`, what they come to in `build`; here are the
//! reading, and what is wrong with a file in one line.

mod build;
mod demand;
mod form;
mod quantity;

use crate::Profile;

/// Gives the text of a file that the satellite's file names, or says why there is none. The caller decides where it lies.
pub type Open<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// Why a file is no satellite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct FileError {
    /// The file as it was named.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there, and how it is written.
    pub reason: String,
}

/// What is wrong, and where it stands in the text.
#[derive(Debug)]
pub(crate) struct Wrong {
    at: usize,
    reason: String,
}

impl Profile {
    /// Reads a satellite from the `text` of `file`, which is called in errors as it is written here and gives the link its
    /// name if the text has none.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn from_toml(text: &str, file: &str, open: &mut Open<'_>) -> Result<Profile, FileError> {
        let wrong = |wrong: Wrong| FileError {
            file: one_line(file),
            line: 1 + text.as_bytes().iter().take(wrong.at).filter(|byte| **byte == b'\n').count(),
            reason: one_line(&wrong.reason),
        };
        let profile = Profile::read(text, stem(file), open).map_err(wrong)?;
        if profile.is_preset() {
            let at = text
                .lines()
                .take_while(|line| !line.trim_start().starts_with("name"))
                .map(|line| line.len() + 1);
            let reason = format!("a link that Farhop knows is called '{}'; write another name", profile.name);
            return Err(wrong(Wrong { at: at.sum(), reason }));
        }
        Ok(profile)
    }

    /// As [`Profile::from_toml`], for our own files too.
    pub(crate) fn read(text: &str, name: &str, open: &mut Open<'_>) -> Result<Profile, Wrong> {
        let form = toml_edit::de::from_str::<form::Satellite>(text).map_err(|error| Wrong {
            at: error.span().map_or(0, |span| span.start),
            reason: one_line(error.message()),
        });
        build::profile(form?, name, open)
    }
}

/// Entry of the fuzzer: whatever the text, it is a satellite or is refused with a line that exists.
///
/// # Panics
/// It is not.
#[doc(hidden)]
pub fn fuzz_satellite(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let again =
        &mut |name: &str| if name == "self" { Ok(text.to_owned()) } else { Err("no file".to_owned()) };
    match Profile::from_toml(text, "fuzz.toml", again) {
        Ok(profile) => {
            let (mut path, start) = (crate::Path::new(&profile, 1), std::time::Duration::from_secs(1));
            for way in crate::Way::BOTH {
                path.handle_packet(start, way, farhop_units::Bytes(1000), ());
            }
            while path.poll_transmit(start).is_some() {}
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains('\n') && error.line <= 1 + text.matches('\n').count(), "{message}");
        }
    }
}

/// The name of a file without folder and ending.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// Text of others within a line of ours.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(", ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

//! The file in which choices and lessons outlive the process.

use std::io;
use std::path::{Path, PathBuf};

use farhop_consent::Kept;
use farhop_files::{self as files, Found};

/// Far above what bounds on choices and lessons let it become.
const LONGEST: u64 = 256 * 1024 * 1024;

/// Why choices and lessons could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// It is there, but cannot be read.
    #[error("{}: cannot read what users have switched off ({error}); make it readable, or set another 'interception.state'", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It cannot be written.
    #[error("{}: cannot keep what users have switched off ({error}); give an 'interception.state' in a folder that exists and is writable", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Reads what was kept; nothing where there is no file yet. What cannot be understood is set aside.
pub(super) fn load(file: &Path) -> Result<Kept, ConsentError> {
    let found = files::load(file, LONGEST, Kept::from_text)
        .map_err(|error| ConsentError::Read { file: file.into(), error })?;
    Ok(match found {
        Found::Read(kept) => kept,
        Found::Nothing => Kept::default(),
        Found::SetAside { as_, why } => {
            tracing::warn!(
                target: "farhop",
                "{}: {why}; set aside as {}, what users had switched off is forgotten",
                file.display(),
                as_.display()
            );
            Kept::default()
        }
    })
}

/// Keeps what is to be kept.
pub(super) fn save(file: &Path, text: &str) -> Result<(), ConsentError> {
    files::replace(file, text.as_bytes()).map_err(|error| ConsentError::Write { file: file.into(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_cannot_be_understood_is_set_aside_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("consent.json");
        for text in ["{\"version\": 7}", "damaged"] {
            fs::write(&file, text).unwrap();
            assert_eq!(load(&file).unwrap(), Kept::default());
            assert!(!file.exists());
        }
        fs::write(&file, [0xff, 0xfe]).unwrap();
        load(&file).unwrap();
        let aside = |number| fs::read(folder.path().join(format!("consent.json.aside-{number}"))).unwrap();
        assert_eq!(aside(1), b"{\"version\": 7}");
        assert_eq!(aside(2), b"damaged");
        assert_eq!(aside(3), [0xff, 0xfe]);
    }

    #[test]
    fn what_is_there_and_cannot_be_read_is_not_taken_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // A folder of that name: unreadable for root too.
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("cannot read what users have switched off"), "{error}");
    }
}

//! The file in which calls are written down, so that a manager that was killed finds them again. It is replaced whole, by a
//! rename; it need not outlive a loss of power, which ends the calls themselves.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use farhop_diffserv::calls::Kept;
use farhop_files::Found;
use serde::{Deserialize, Serialize};

/// The version of the file's format.
const FORMAT: u64 = 1;
/// Far above what calls a link can carry.
const LONGEST: u64 = 1 << 24;

/// Why calls could not be written down.
#[derive(Debug, thiserror::Error)]
#[error("calls cannot be written down in {}: {source}", path.display())]
pub struct StateError {
    path: PathBuf,
    source: io::Error,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    format: u64,
    calls: Vec<Kept>,
}

/// Calls that were written down; a file that cannot be understood is set aside.
pub(crate) fn load(path: &Path) -> Result<Found<Vec<Kept>>, StateError> {
    let parse = |text: &str| match serde_json::from_str(text) {
        Ok(File { format: FORMAT, calls }) => Ok(calls),
        Ok(File { format, .. }) => Err(format!("calls written down in format {format}")),
        Err(error) => Err(error.to_string()),
    };
    farhop_files::load(path, LONGEST, parse).map_err(|source| StateError { path: path.into(), source })
}

pub(crate) fn save(path: &Path, calls: Vec<Kept>) -> Result<(), StateError> {
    let failed = |source| StateError { path: path.into(), source };
    let text = serde_json::to_vec(&File { format: FORMAT, calls }).map_err(|error| failed(error.into()))?;
    let next = path.with_extension("next");
    fs::write(&next, text).and_then(|()| fs::rename(&next, path)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_set_aside_and_never_misread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.json");
        assert_eq!(load(&path).unwrap(), Found::Nothing);
        for text in [r#"{"format":2,"calls":[]}"#, "{", ""] {
            fs::write(&path, text).unwrap();
            let Found::SetAside { as_, .. } = load(&path).unwrap() else { panic!("{text}") };
            assert_eq!(fs::read_to_string(as_).unwrap(), text);
            assert_eq!(load(&path).unwrap(), Found::Nothing);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let line = save(Path::new("/nowhere/at/all/calls.json"), Vec::new()).unwrap_err().to_string();
        assert!(line.starts_with("calls cannot be written down in /nowhere/at/all/calls.json: "), "{line}");
    }
}

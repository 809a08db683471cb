//! The file in which calls are written down, so that a manager that was killed finds them again. It is replaced whole, by a
//! rename; it need not outlive a loss of power, which ends the calls themselves.

use std::fs::{self, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use farhop_diffserv::calls::Kept;
use farhop_files::Found;
use serde::{Deserialize, Serialize};

/// The version of the file's format.
const FORMAT: u64 = 1;
/// Far above what calls a link can carry.
const LONGEST: u64 = 1 << 24;
/// Who writes says in so many bytes who that is.
const LONGEST_NAME: u64 = 200;

/// Why calls could not be written down.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system's.
    #[error("calls cannot be written down in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// Another manager writes there.
    #[error("{} has the calls of another manager that runs ({who}); set another 'calls_file'", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// Who that is.
        who: String,
    },
    /// It has the calls of another device.
    #[error(
        "{} has the calls of {interface}; set another 'calls_file', or remove that file if {interface} is no more",
        path.display()
    )]
    Others {
        /// The file.
        path: PathBuf,
        /// That device.
        interface: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    format: u64,
    /// Whose calls these are; those of old did not say it.
    #[serde(default)]
    interface: Option<String>,
    calls: Vec<Kept>,
}

/// The file of one device's calls, which nobody else writes meanwhile.
#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    interface: String,
    /// Beside the file, since that is replaced again and again; the lock ends with the process.
    lock: fs::File,
}

impl Drop for State {
    fn drop(&mut self) {
        // Not merely closed: a program that is just being started has all that is open here until it begins.
        let _ = self.lock.unlock();
    }
}

impl State {
    /// Calls that were written down; a file that cannot be understood is set aside.
    pub(crate) fn open(path: &Path, interface: &str) -> Result<(State, Found<Vec<Kept>>), StateError> {
        let lock = lock(path, interface)?;
        let parse = |text: &str| match serde_json::from_str(text) {
            Ok(File { format: FORMAT, interface, calls }) => Ok((interface, calls)),
            Ok(File { format, .. }) => Err(format!("calls written down in format {format}")),
            Err(error) => Err(error.to_string()),
        };
        let found = farhop_files::load(path, LONGEST, parse)
            .map_err(|source| StateError::Io { path: path.into(), source })?;
        let found = match found {
            Found::Read((Some(other), _)) if other != interface => {
                return Err(StateError::Others { path: path.into(), interface: other });
            }
            Found::Read((_, calls)) => Found::Read(calls),
            Found::Nothing => Found::Nothing,
            Found::SetAside { as_, why } => Found::SetAside { as_, why },
        };
        Ok((State { path: path.into(), interface: interface.into(), lock }, found))
    }

    pub(crate) fn save(&self, calls: Vec<Kept>) -> Result<(), StateError> {
        let path = &self.path;
        let failed = |source| StateError::Io { path: path.clone(), source };
        let file = File { format: FORMAT, interface: Some(self.interface.clone()), calls };
        let text = serde_json::to_vec(&file).map_err(|error| failed(error.into()))?;
        let next = beside(path, ".next");
        fs::write(&next, text).and_then(|()| fs::rename(&next, path)).map_err(failed)
    }
}

fn lock(path: &Path, interface: &str) -> Result<fs::File, StateError> {
    let failed = |source| StateError::Io { path: path.into(), source };
    let name = beside(path, ".lock");
    let options = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&name);
    let mut file = options.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let who = farhop_files::read(&name, LONGEST_NAME).unwrap_or_default();
            let who = who.chars().filter(|it| !it.is_control()).collect();
            return Err(StateError::Taken { path: path.into(), who });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    let who = format!("process {}, for {interface}", std::process::id());
    file.set_len(0).and_then(|()| file.write_all(who.as_bytes())).map_err(failed)?;
    Ok(file)
}

/// A file of the same name with something after it.
fn beside(path: &Path, after: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(after);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<Found<Vec<Kept>>, String> {
        State::open(path, "sat0").map(|(_, found)| found).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_understood_is_set_aside_and_never_misread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.json");
        assert_eq!(open(&path).unwrap(), Found::Nothing);
        for text in [r#"{"format":2,"calls":[]}"#, "{", ""] {
            fs::write(&path, text).unwrap();
            let Found::SetAside { as_, .. } = open(&path).unwrap() else { panic!("{text}") };
            assert_eq!(fs::read_to_string(as_).unwrap(), text);
            assert_eq!(open(&path).unwrap(), Found::Nothing);
        }
    }

    #[test]
    fn calls_of_another_device_are_left_alone_and_those_of_old_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link.calls");
        fs::write(&path, r#"{"format":1,"calls":[]}"#).unwrap();
        assert_eq!(open(&path).unwrap(), Found::Read(Vec::new()));
        let (other, _) = State::open(&path, "sat1").unwrap();
        other.save(Vec::new()).unwrap();
        let before = fs::read(&path).unwrap();
        let line = open(&path).unwrap_err();
        let who = format!("(process {}, for sat1); set another 'calls_file'", std::process::id());
        assert!(
            line.contains("has the calls of another manager that runs") && line.ends_with(&who),
            "{line}"
        );
        drop(other);
        let line = open(&path).unwrap_err();
        assert!(line.contains("has the calls of sat1; set another 'calls_file'"), "{line}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert!(State::open(&path, "sat1").is_ok());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let line = open(Path::new("/nowhere/at/all/calls.json")).unwrap_err();
        assert!(line.starts_with("calls cannot be written down in /nowhere/at/all/calls.json: "), "{line}");
    }
}

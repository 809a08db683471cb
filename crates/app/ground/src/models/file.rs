//! The files in which models outlive the process: what three users have shown in one, what each has in another.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use farhop_models::{Limits, SavedError};

/// Why models could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot keep page models ({error}); give 'models.{setting}' in a folder that exists and is writable, or auto", file.display())]
pub struct ModelsError {
    setting: &'static str,
    file: PathBuf,
    error: io::Error,
}

/// One of the two.
#[derive(Debug, Clone)]
pub(super) struct ModelsFile {
    /// What it is called in the settings.
    setting: &'static str,
    file: PathBuf,
}

impl ModelsFile {
    pub(super) fn new(setting: &'static str, file: &Path) -> ModelsFile {
        ModelsFile { setting, file: file.into() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    fn failed(&self, error: io::Error) -> ModelsError {
        ModelsError { setting: self.setting, file: self.file.clone(), error }
    }

    /// Has `take` take what was kept. Where there is no file yet one is made with `nothing` in it; what cannot be understood is
    /// set aside.
    pub(super) fn load(
        &self,
        limits: Limits,
        nothing: &str,
        take: impl FnOnce(&str) -> Result<(), SavedError>,
    ) -> Result<(), ModelsError> {
        let file = &self.file;
        // JSON takes more room than memory does, but not by so much.
        let longest = (limits.bytes as u64).saturating_mul(4).saturating_add(1 << 20);
        let text = match read(file, longest) {
            Ok(text) => text,
            // So that a folder that is missing is told of at the start.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.save(nothing),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(error) => return Err(self.failed(error)),
        };
        take(&text).or_else(|error| {
            let aside = aside(file);
            fs::rename(file, &aside).map_err(|error| self.failed(error))?;
            tracing::warn!(
                target: "farhop",
                "{}: {error}; set aside as {}, pages are learned anew",
                file.display(),
                aside.display()
            );
            Ok(())
        })
    }

    /// Replaces the file in one step; only its owner may read it.
    pub(super) fn save(&self, text: &str) -> Result<(), ModelsError> {
        replace(&self.file, text).map_err(|error| self.failed(error))
    }
}

fn read(file: &Path, longest: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(longest + 1).read_to_string(&mut text)?;
    if text.len() as u64 > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than {longest} bytes")));
    }
    Ok(text)
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut half = OsString::from(file);
    half.push(".next");
    let half = PathBuf::from(half);
    // Made anew, so that nobody holds it open; what a killed process left behind is in the way.
    match fs::remove_file(&half) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(half, file)
}

/// A name beside `file` that nothing has yet.
fn aside(file: &Path) -> PathBuf {
    let name = |number: u32| {
        let mut name = OsString::from(file);
        name.push(format!(".aside-{number}"));
        PathBuf::from(name)
    };
    (1..).map(name).find(|name| !name.exists()).expect("a folder holds less than 2³² files of one name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_models::Models;
    use std::os::unix::fs::PermissionsExt;

    const LIMITS: Limits = Limits { bytes: 1 << 20 };

    fn load(file: &Path) -> Result<Models, ModelsError> {
        let mut models = Models::new(LIMITS);
        let nothing = models.to_text();
        let take = |text: &str| Models::from_text(text, LIMITS).map(|read| models = read);
        ModelsFile::new("file", file).load(LIMITS, &nothing, take)?;
        Ok(models)
    }

    #[test]
    fn only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ground.models");
        load(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(load(&file).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_understood_is_set_aside_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ground.models");
        for (number, text) in ["{\"version\": 7}", "not JSON", "\u{0}"].iter().enumerate() {
            fs::write(&file, text).unwrap();
            assert!(load(&file).unwrap().is_empty());
            let aside = folder.path().join(format!("ground.models.aside-{}", number + 1));
            assert_eq!(fs::read_to_string(aside).unwrap(), *text);
            assert!(!file.exists());
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_told_of_in_one_line() {
        let error = load(Path::new("/nowhere/at/all/ground.models")).unwrap_err().to_string();
        assert!(error.contains("models.file") && error.lines().count() == 1, "{error}");
    }
}

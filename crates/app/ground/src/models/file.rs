//! The files in which models outlive the process: what three users have shown in one, what each has in another.

use std::io;
use std::path::{Path, PathBuf};

use farhop_files::{self as files, Found};
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
        match files::load(file, longest, take).map_err(|error| self.failed(error))? {
            Found::Read(()) => Ok(()),
            // So that a folder that is missing is told of at the start.
            Found::Nothing => self.save(nothing),
            Found::SetAside { as_, why } => {
                tracing::warn!(
                    target: "farhop",
                    "{}: {why}; set aside as {}, pages are learned anew",
                    file.display(),
                    as_.display()
                );
                Ok(())
            }
        }
    }

    /// Replaces the file in one step.
    pub(super) fn save(&self, text: &str) -> Result<(), ModelsError> {
        files::replace(&self.file, text.as_bytes()).map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_models::Models;
    use std::fs;
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

//! The file in which what three users have shown outlives the process.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use farhop_models::{Limits, Models};

/// Why models could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot keep page models ({error}); give 'models.file' in a folder that exists and is writable, or auto", file.display())]
pub struct ModelsError {
    file: PathBuf,
    error: io::Error,
}

/// Reads what was kept; nothing where there is no file yet. What cannot be understood is set aside.
pub(super) fn load(file: &Path, limits: Limits) -> Result<Models, ModelsError> {
    let failed = |error| ModelsError { file: file.into(), error };
    // JSON takes more room than memory does, but not by so much.
    let longest = (limits.bytes as u64).saturating_mul(4).saturating_add(1 << 20);
    let text = match read(file, longest) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // So that a folder that is missing is told of at the start.
            save(file, &Models::new(limits).to_text())?;
            return Ok(Models::new(limits));
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(failed(error)),
    };
    Models::from_text(&text, limits).or_else(|error| {
        let aside = aside(file);
        fs::rename(file, &aside).map_err(failed)?;
        tracing::warn!(
            target: "farhop",
            "{}: {error}; set aside as {}, pages are learned anew",
            file.display(),
            aside.display()
        );
        Ok(Models::new(limits))
    })
}

/// Replaces the file in one step; only its owner may read it.
pub(super) fn save(file: &Path, text: &str) -> Result<(), ModelsError> {
    replace(file, text).map_err(|error| ModelsError { file: file.into(), error })
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
    use std::os::unix::fs::PermissionsExt;

    const LIMITS: Limits = Limits { bytes: 1 << 20 };

    #[test]
    fn only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ground.models");
        load(&file, LIMITS).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(load(&file, LIMITS).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_understood_is_set_aside_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ground.models");
        for (number, text) in ["{\"version\": 7}", "not JSON", "\u{0}"].iter().enumerate() {
            fs::write(&file, text).unwrap();
            assert!(load(&file, LIMITS).unwrap().is_empty());
            let aside = folder.path().join(format!("ground.models.aside-{}", number + 1));
            assert_eq!(fs::read_to_string(aside).unwrap(), *text);
            assert!(!file.exists());
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_told_of_in_one_line() {
        let error = load(Path::new("/nowhere/at/all/ground.models"), LIMITS).unwrap_err().to_string();
        assert!(error.contains("models.file") && error.lines().count() == 1, "{error}");
    }
}

//! Small files that outlive the process: read whole, replaced in one step, set aside when not understood.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

/// Reads the whole of `file` as text, at most `longest` bytes.
///
/// # Errors
/// The system's, `InvalidData` where the file is longer or no UTF-8.
pub fn read(file: &Path, longest: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(longest.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > longest {
        let reason = format!("it is longer than {longest} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(text)
}

/// What [`load`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// What was kept.
    Read(T),
    /// There is no file yet.
    Nothing,
    /// Something that cannot be understood; it stands under another name now, and nobody overwrites it.
    SetAside {
        /// That name.
        as_: PathBuf,
        /// What was wrong with it.
        why: String,
    },
}

/// Reads what was kept in `file`, at most `longest` bytes that `parse` understands.
///
/// # Errors
/// The system's: what is there and cannot be read is not taken for nothing.
pub fn load<T, E: Display>(
    file: &Path,
    longest: u64,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> io::Result<Found<T>> {
    let why = match read(file, longest) {
        Ok(text) => match parse(&text) {
            Ok(kept) => return Ok(Found::Read(kept)),
            Err(error) => error.to_string(),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
        Err(error) => return Err(error),
    };
    let as_ = aside(file);
    fs::rename(file, &as_)?;
    Ok(Found::SetAside { as_, why })
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

/// Makes a file that only its owner may use and that survives a power cut.
///
/// # Errors
/// The system's, `AlreadyExists` where there is one.
pub fn create(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    created.write_all(bytes).and_then(|()| created.sync_all()).inspect_err(|_| {
        // Half of it is of no use to anybody, and would be in the way of the next attempt.
        let _ = fs::remove_file(file);
    })
}

/// Replaces `file` by one that holds `bytes`, in one step: whoever reads it sees the old or the new, and so does who
/// reads it after a power cut. The new one has the old one's owner and mode; without an old one only its owner may use it.
///
/// # Errors
/// The system's. The old file is untouched then.
pub fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link is followed: it is the file behind it that is meant.
    let file = &fs::canonicalize(file).unwrap_or_else(|_| file.into());
    let old = fs::metadata(file).ok();
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let half = folder.join(format!(".{name}.{}", std::process::id()));
    // Made anew, so that nobody holds it open; what a killed process left behind is in the way.
    match fs::remove_file(&half) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    create(&half, bytes)?;
    let moved = (|| {
        if let Some(old) = &old {
            let own = fs::metadata(&half)?;
            if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
                chown(&half, Some(old.uid()), Some(old.gid()))?;
            }
            fs::set_permissions(&half, old.permissions())?;
        }
        fs::rename(&half, file)?;
        File::open(folder)?.sync_all()
    })();
    if moved.is_err() {
        let _ = fs::remove_file(&half);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_file_is_its_owners_and_a_replaced_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        replace(&file, b"one").unwrap();
        assert_eq!((read(&file, 10).unwrap().as_str(), mode()), ("one", 0o600));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!((read(&file, 10).unwrap().as_str(), mode()), ("two", 0o640));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("f"), folder.path().join("l"));
        replace(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&file, 10).unwrap(), "two");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(&folder.path().join("none/f"), b"x").is_err());
        // A folder cannot be replaced by a file.
        let file = folder.path().join("d");
        fs::create_dir(&file).unwrap();
        assert!(replace(&file, b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        replace(&file, b"12345").unwrap();
        assert_eq!(read(&file, 5).unwrap(), "12345");
        assert!(read(&file, 4).unwrap_err().to_string().contains("longer than 4 bytes"));
    }

    #[test]
    fn a_file_that_is_there_is_not_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        create(&file, b"one").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(create(&file, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(read(&file, 10).unwrap(), "one");
    }

    #[test]
    fn what_is_not_understood_is_set_aside_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        let number = |text: &str| text.parse::<u8>();
        assert!(matches!(load(&file, 3, number).unwrap(), Found::Nothing));
        replace(&file, b"7").unwrap();
        assert!(matches!(load(&file, 3, number).unwrap(), Found::Read(7)));
        for (count, bytes) in [&b"x"[..], b"1000", &[0xff]].into_iter().enumerate() {
            replace(&file, bytes).unwrap();
            let Found::SetAside { as_, why } = load(&file, 3, number).unwrap() else { panic!("{bytes:?}") };
            assert_eq!(as_, folder.path().join(format!("f.aside-{}", count + 1)));
            assert_eq!(
                (fs::read(&as_).unwrap().as_slice(), why.is_empty(), file.exists()),
                (bytes, false, false)
            );
        }
        // What is there and cannot be read is not taken for nothing. A folder: unreadable for root too.
        assert!(load(folder.path(), 3, number).is_err());
    }
}

//! Small files that outlive the process: read whole, replaced in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::Path;

/// Reads the whole of `file` as text, at most `longest` bytes.
///
/// # Errors
/// The system's, `InvalidData` where the file is longer or no UTF-8.
pub(crate) fn read(file: &Path, longest: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(longest + 1).read_to_string(&mut text)?;
    if text.len() as u64 > longest {
        let reason = format!("it is longer than {longest} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(text)
}

/// Replaces `file` by one that holds `text`, in one step: whoever reads it sees the old or the new, and so does who
/// reads it after a power cut. The new one has the old one's owner and mode; without an old one only its owner may use it.
///
/// # Errors
/// The system's. The old file is untouched then.
pub(crate) fn replace(file: &Path, text: &str) -> io::Result<()> {
    // A link is followed: it is the file behind it that is meant.
    let file = &fs::canonicalize(file).unwrap_or_else(|_| file.into());
    let old = fs::metadata(file).ok();
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let half = folder.join(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        // Made anew, so that nobody holds it open; what a killed process left behind is in the way.
        match fs::remove_file(&half) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
        if let Some(old) = &old {
            let own = new.metadata()?;
            if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
                chown(&half, Some(old.uid()), Some(old.gid()))?;
            }
            new.set_permissions(old.permissions())?;
        }
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        fs::rename(&half, file)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        let _ = fs::remove_file(&half);
    }
    written
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
        replace(&file, "one").unwrap();
        assert_eq!((read(&file, 10).unwrap().as_str(), mode()), ("one", 0o600));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&file, "two").unwrap();
        assert_eq!((read(&file, 10).unwrap().as_str(), mode()), ("two", 0o640));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("f"), folder.path().join("l"));
        replace(&file, "one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&file, 10).unwrap(), "two");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(&folder.path().join("none/f"), "x").is_err());
        // A folder cannot be replaced by a file.
        let file = folder.path().join("d");
        fs::create_dir(&file).unwrap();
        assert!(replace(&file, "x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        replace(&file, "12345").unwrap();
        assert_eq!(read(&file, 5).unwrap(), "12345");
        assert!(read(&file, 4).unwrap_err().to_string().contains("longer than 4 bytes"));
    }
}

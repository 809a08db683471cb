//! A folder in which a store outlives the processes that use it, and ways to harm what is there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::MeasureError;
use crate::local::Local;

/// A folder in which a store outlives its processes.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Result<Place, MeasureError> {
        tempfile::tempdir().map(Place).map_err(MeasureError::system("a folder"))
    }

    /// The store itself.
    pub(crate) fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    /// The file of the key that it is sealed with.
    pub(crate) fn key(&self) -> PathBuf {
        self.0.path().join("store.key")
    }

    /// The program on it.
    pub(super) fn start(&self) -> Result<Local, MeasureError> {
        self.start_with(&[])
    }

    /// The same with more settings (`NAME=VALUE`).
    pub(crate) fn start_with(&self, more: &[&str]) -> Result<Local, MeasureError> {
        Local::start(&strs(&self.options(more)))
    }

    /// The same of `command`, which becomes the program; what it says goes to [`said`](Self::said).
    pub(super) fn start_as(&self, command: Command) -> Result<Local, MeasureError> {
        let file = File::create(self.errors()).map_err(MeasureError::system("a file"))?;
        Local::start_as(command, &strs(&self.options(&[])), file.into())
    }

    fn errors(&self) -> PathBuf {
        self.0.path().join("stderr")
    }

    /// What the program that was started last as a command said on standard error.
    pub(super) fn said(&self) -> String {
        std::fs::read_to_string(self.errors()).unwrap_or_default()
    }

    /// The options that put the store there, and little into memory, so that most answers are from disk.
    pub(super) fn options(&self, more: &[&str]) -> Vec<String> {
        let set = |name: &str, file: PathBuf| {
            format!("remote.store.{name}={}", serde_json::Value::from(file.to_string_lossy()))
        };
        let sets = [
            set("directory", self.store()),
            set("key", self.key()),
            "remote.repository.size=2 MB".to_owned(),
            "remote.repository.entry=1 MB".to_owned(),
        ];
        let sets = sets.into_iter().chain(more.iter().map(|set| (*set).to_owned()));
        let sets = sets.flat_map(|set| ["--set".to_owned(), set]);
        ["--allow".to_owned(), "127.0.0.0/8".to_owned()].into_iter().chain(sets).collect()
    }

    /// The index, if there is one.
    pub(super) fn index(&self) -> Vec<PathBuf> {
        [self.store().join("index.redb")].into_iter().filter(|file| file.is_file()).collect()
    }

    /// The files of all bodies.
    pub(super) fn bodies(&self) -> Vec<PathBuf> {
        let files = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        files(&self.store().join("bodies")).iter().flat_map(|folder| files(folder)).collect()
    }
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

pub(super) fn cut_in_half(file: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(file)?;
    file.set_len(file.metadata()?.len() / 2)
}

/// A few bytes in each 4 KiB become others.
pub(super) fn overwrite(file: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(file)?;
    for at in (0..file.metadata()?.len().saturating_sub(8)).step_by(4096) {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at)?;
        file.write_all_at(&bytes.map(|byte| !byte), at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_harmed_is_harmed() {
        let place = Place::new().unwrap();
        let file = place.store().join("bodies/ab/cd");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, vec![7; 10_000]).unwrap();
        assert_eq!((place.bodies(), place.index()), (vec![file.clone()], Vec::new()));
        overwrite(&file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte != 7).count(), 24);
        cut_in_half(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 5_000);
    }
}

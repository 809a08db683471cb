//! The folder on disk: whose it is, its index while that works, and what is done when it does not.
//!
//! ```text
//! lock              held for as long as a process uses the folder
//! index.redb        the index
//! bodies/           the bodies
//! index.set-aside   an index that could not be used, with bodies.set-aside, which goes when there is time
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use super::DiskError;
use super::files::Bodies;
use super::index::{Begun, Index, Unusable};

struct State {
    index: Option<Index>,
    /// The next attempt begins anew.
    is_damaged: bool,
    /// The folder is this process's for as long as it has this.
    lock: Option<File>,
}

/// The folder; clones are the same.
#[derive(Clone)]
pub(super) struct Place {
    folder: PathBuf,
    mark: u64,
    state: Arc<RwLock<State>>,
}

impl Place {
    /// Takes the folder for this process and opens its index.
    pub(super) fn take(folder: &Path, mark: u64) -> Result<(Place, Begun), DiskError> {
        let failed = |error| DiskError::Io { folder: folder.into(), error };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let lock = File::create(folder.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => DiskError::InUse(folder.into()),
            TryLockError::Error(error) => failed(error),
        })?;
        let state = Arc::new(RwLock::new(State { index: None, is_damaged: false, lock: Some(lock) }));
        let place = Place { folder: folder.into(), mark, state };
        let begun = match place.open() {
            Ok(begun) => begun,
            Err(Unusable::Database(error)) if is_of_the_system(&error) => {
                return Err(failed(io::Error::other(error)));
            }
            Err(why) => {
                place.set_aside(&why).map_err(failed)?;
                place.open().map_err(|error| failed(io::Error::other(error.to_string())))?
            }
        };
        Ok((place, begun))
    }

    fn open(&self) -> Result<Begun, Unusable> {
        Bodies::open(self.bodies()).map_err(redb::Error::Io)?;
        let (index, begun) = Index::open(&self.folder.join("index.redb"), self.mark)?;
        self.change().index = Some(index);
        Ok(begun)
    }

    /// Gives the folder back, once nobody reads the index any more. Blocks.
    pub(super) fn leave(&self) {
        let mut state = self.change();
        state.index = None;
        if let Some(lock) = state.lock.take() {
            // Not merely closed: a process that is just being started has all that is open here until it begins.
            let _ = lock.unlock();
        }
    }

    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the index, unless it has failed or the folder was given back.
    pub(super) fn ask<T>(
        &self,
        ask: impl FnOnce(&Index) -> Result<T, redb::Error>,
    ) -> Option<Result<T, redb::Error>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).index.as_ref().map(ask)
    }

    pub(super) fn has_index(&self) -> bool {
        self.ask(|_| Ok(())).is_some()
    }

    /// The index is not used any more for now.
    pub(super) fn fail(&self, error: &redb::Error) {
        let mut state = self.change();
        if state.index.take().is_some() {
            state.is_damaged |= !is_of_the_system(error);
            tracing::warn!(
                target: "farhop",
                "store {}: {error}; what comes in the next half minute is held in memory only", self.name()
            );
        }
    }

    /// Opens an index that has failed.
    pub(super) fn open_again(&self) -> Result<(), Unusable> {
        let is_damaged = std::mem::take(&mut self.change().is_damaged);
        if is_damaged {
            let why = Unusable::Database(Box::new(redb::Error::Corrupted("it contradicts itself".into())));
            self.set_aside(&why).map_err(redb::Error::Io)?;
        }
        self.open().map(drop)
    }

    /// Closes the index and opens it anew, as it was before what has failed.
    pub(super) fn reopen(&self) -> bool {
        self.change().index = None;
        self.open().is_ok()
    }

    /// Puts an index that cannot be used where it can be looked at, and begins anew.
    fn set_aside(&self, why: &Unusable) -> io::Result<()> {
        let at = |name: &str| self.folder.join(name);
        tracing::warn!(
            target: "farhop",
            "store {}: the index cannot be used ({why}); it is set aside as index.set-aside, and the store begins anew", self.name()
        );
        let (index, old) = (at("index.set-aside"), at("bodies.set-aside"));
        for last in [&index, &old] {
            match fs::symlink_metadata(last) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(last)?,
                Ok(_) => fs::remove_file(last)?,
                Err(_) => {}
            }
        }
        fs::rename(at("index.redb"), index)?;
        if at("bodies").exists() {
            fs::rename(at("bodies"), &old)?;
        }
        Ok(())
    }

    /// Where the bodies are.
    pub(super) fn bodies(&self) -> PathBuf {
        self.folder.join("bodies")
    }

    /// Removes the bodies of an index that was set aside. There may be many.
    pub(super) fn tidy(&self) {
        // Mostly there are none.
        let _ = fs::remove_dir_all(self.folder.join("bodies.set-aside"));
    }

    /// What to call it in a line of the log.
    pub(super) fn name(&self) -> std::path::Display<'_> {
        self.folder.display()
    }
}

/// The system refused, which says nothing of what is in the file.
fn is_of_the_system(error: &redb::Error) -> bool {
    use io::ErrorKind::{InvalidData, IsADirectory, UnexpectedEof};
    match error {
        redb::Error::Io(error) => !matches!(error.kind(), InvalidData | IsADirectory | UnexpectedEof),
        redb::Error::PreviousIo | redb::Error::DatabaseAlreadyOpen => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_given_back_can_be_taken_though_somebody_still_wants_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let (place, _) = Place::take(folder.path(), 1).unwrap();
        let reader = place.clone();
        assert!(matches!(Place::take(folder.path(), 1), Err(DiskError::InUse(_))));
        place.leave();
        assert!(!reader.has_index());
        let (next, _) = Place::take(folder.path(), 1).unwrap();
        assert!(next.has_index());
    }
}

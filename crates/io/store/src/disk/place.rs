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
use std::sync::{Arc, Mutex, PoisonError};

use super::DiskError;
use super::files::Bodies;
use super::index::{Begun, Index, Unusable};

struct State {
    index: Option<Arc<Index>>,
    /// The next attempt begins anew.
    is_damaged: bool,
}

/// The folder; clones are the same.
#[derive(Clone)]
pub(super) struct Place {
    folder: PathBuf,
    mark: u64,
    state: Arc<Mutex<State>>,
    /// Held open: the lock ends with it.
    _lock: Arc<File>,
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
        let state = Arc::new(Mutex::new(State { index: None, is_damaged: false }));
        let place = Place { folder: folder.into(), mark, state, _lock: Arc::new(lock) };
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
        self.lock().index = Some(Arc::new(index));
        Ok(begun)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index, unless it has failed.
    pub(super) fn index(&self) -> Option<Arc<Index>> {
        self.lock().index.clone()
    }

    /// The index is not used any more for now.
    pub(super) fn fail(&self, error: &redb::Error) {
        let mut state = self.lock();
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
        let is_damaged = std::mem::take(&mut self.lock().is_damaged);
        if is_damaged {
            let why = Unusable::Database(Box::new(redb::Error::Corrupted("it contradicts itself".into())));
            self.set_aside(&why).map_err(redb::Error::Io)?;
        }
        self.open().map(drop)
    }

    /// Puts an index that cannot be used where it can be looked at, and begins anew.
    fn set_aside(&self, why: &Unusable) -> io::Result<()> {
        let at = |name: &str| self.folder.join(name);
        tracing::warn!(
            target: "farhop",
            "store {}: the index cannot be used ({why}); it is set aside as index.set-aside, and the store begins anew", self.name()
        );
        fs::rename(at("index.redb"), at("index.set-aside"))?;
        let old = at("bodies.set-aside");
        if old.exists() {
            fs::remove_dir_all(&old)?;
        }
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
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        redb::Error::Io(error) => !matches!(error.kind(), InvalidData | UnexpectedEof),
        redb::Error::PreviousIo | redb::Error::DatabaseAlreadyOpen => true,
        _ => false,
    }
}

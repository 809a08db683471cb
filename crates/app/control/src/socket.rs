//! The socket file: made with the right mode from its first moment, a dead process's replaced, a live
//! one's respected, removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::net::{UnixListener, UnixStream};

use crate::error::ControlError;

/// A control socket that listens; its file goes when this does.
#[derive(Debug)]
pub struct Socket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Opens the socket at `path`, readable and writable by its owner alone. Needs a tokio runtime.
    ///
    /// # Errors
    /// A live process listens there, something that is no socket is in the way, or the folder does not
    /// take it.
    pub fn open(path: &Path) -> Result<Socket, ControlError> {
        let failed = |source| ControlError::Open { path: path.into(), source };
        refuse_what_is_in_use(path)?;

        // bind() makes the file with a mode that the umask decides, and a chmod after it comes too late for
        // whoever was quick. So it is made in a folder that nobody else can enter and moved once it is safe;
        // the move also replaces a dead process's file in one step.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(".{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let nursery = path.parent().unwrap_or(Path::new("")).join(name);
        fs::DirBuilder::new().mode(0o700).create(&nursery).map_err(failed)?;
        let newborn = nursery.join("s");
        let opened = (|| {
            let listener = std::os::unix::net::UnixListener::bind(&newborn)?;
            fs::set_permissions(&newborn, fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            let inode = fs::metadata(&newborn)?.ino();
            let listener = UnixListener::from_std(listener)?;
            fs::rename(&newborn, path)?;
            Ok(Socket { listener, path: path.into(), inode })
        })();
        if opened.is_err() {
            let _ = fs::remove_file(&newborn);
        }
        let _ = fs::remove_dir(&nursery);
        opened.map_err(failed)
    }

    /// The next caller, for who serves another protocol on such a socket.
    ///
    /// # Errors
    /// Out of descriptors, most likely: those who leave give some back.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another process may have replaced the file since; that one is not ours to remove.
        if fs::metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn refuse_what_is_in_use(path: &Path) -> Result<(), ControlError> {
    let file = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(ControlError::Open { path: path.into(), source }),
        Ok(file) => file,
    };
    if !file.file_type().is_socket() {
        return Err(ControlError::NotASocket(path.into()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        // Only this says for certain that nobody listens any more.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(ControlError::InUse(path.into())),
    }
}

//! What can go wrong with a control socket, for the end that opens it and for those who call.

use std::io;
use std::path::PathBuf;

/// Why a control socket could not be opened, or a call not be made.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another process answers there.
    #[error("{}: another farhop answers on this control socket; stop it, or set another 'control' path", .0.display())]
    InUse(PathBuf),
    /// Something else is in the way, and it is not ours to remove.
    #[error("{}: exists and is no socket; move it away, or set another 'control' path", .0.display())]
    NotASocket(PathBuf),
    /// The socket cannot be made.
    #[error("{}: cannot open the control socket; give a 'control' path in a folder that exists and is writable", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody answers.
    #[error("{}: no farhop answers there; is it running, and is this its 'control' path?", path.display())]
    Connect {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection broke.
    #[error("control socket: {0}")]
    Broken(#[from] io::Error),
    /// The other end closed the connection instead of answering.
    #[error("control socket: closed before the answer came; the process may have ended")]
    Closed,
    /// The answer is not one of this protocol.
    #[error("control socket: the answer cannot be read ({0}); both programs must be of one version")]
    Unreadable(String),
    /// The command was refused or failed.
    #[error("{0}")]
    Refused(String),
}

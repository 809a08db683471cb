//! Why ground does not start. Each line says what, where and what to do.

use farhop_control::ControlError;
use farhop_transport::identity::IdentityError;
use farhop_transport::quic::DuplicateKey;
use farhop_transport::socket::udp::BindError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// `link.profile` names no profile.
    #[error("link.profile: {0}")]
    Profile(String),
    /// The identity cannot be read.
    #[error("identity: {0}")]
    Identity(#[from] IdentityError),
    /// A key in `[[remote]]` is none.
    #[error("[[remote]] {remote}, key {number}: {reason}")]
    Key {
        /// Whose.
        remote: String,
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// Two remotes have the same key.
    #[error("[[remote]]: {0}")]
    DuplicateKey(#[from] DuplicateKey),
    /// The address to listen on is not to be had.
    #[error("listen: {0}")]
    Listen(#[from] BindError),
    /// The control socket is not to be had.
    #[error("control: {0}")]
    Control(#[from] ControlError),
    /// There is no name resolution.
    #[error("name resolution cannot be set up, see /etc/resolv.conf: {0}")]
    Resolver(String),
    /// A file that says whom to trust, or whom no more, can't be used.
    #[error("[origin]: {0}")]
    Trust(#[from] farhop_origin::TrustError),
    /// TLS or signals cannot be set up.
    #[error("{what}: {error}")]
    System {
        /// What was being set up.
        what: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
}

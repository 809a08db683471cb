//! Why ground does not start. Each line says what, where and what to do.

use farhop_control::ControlError;
use farhop_transport::identity::IdentityError;
use farhop_transport::memory::MemoryError;
use farhop_transport::quic::DuplicateKey;
use farhop_transport::socket::udp::BindError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// What is measured of paths cannot be kept.
    #[error(transparent)]
    Paths(#[from] MemoryError),
    /// What is learned of pages cannot be kept.
    #[error(transparent)]
    Models(#[from] crate::models::ModelsError),
    /// The store on disk.
    #[error(transparent)]
    Store(#[from] farhop_store::DiskError),
    /// Its key.
    #[error("store.key: {0}")]
    StoreKey(#[from] farhop_store::KeyError),
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
    /// The same address over TCP is not.
    #[error(
        "listen: tcp {addr} cannot be opened ({error}): stop the process that holds it, choose another address, or set tcp = false"
    )]
    ListenTcp {
        /// The address asked for.
        addr: std::net::SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// The congestion control of carriers over TCP is not to be had.
    #[error("tcp_congestion: {0}")]
    TcpCongestion(#[from] farhop_transport::tcp::CongestionError),
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

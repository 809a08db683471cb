//! Carriers over TCP, for where UDP does not pass: one to eight connections with TLS 1.3, called lanes, between ends
//! that know each other's keys. [`Dialer`] at the remote, [`Listener`] at ground; the streams on them are
//! `farhop_htotp::mux`'s.
//!
//! The remote calls once. When that connection stands it calls for the others, which say to which carrier they belong
//! by a secret that both ends of the first derive from its handshake. A lost lane ends the carrier: what
//! was on it is asked for again on the next.

mod connection;
mod dial;
mod first_window;
mod lane;
mod listen;
mod options;

use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

pub use connection::Connection;
pub(crate) use connection::Parts;
pub use dial::Dialer;
pub use first_window::FirstWindow;
pub(crate) use lane::{Lane, LaneError};
pub use listen::{Accepted, Listener};
pub use options::{CongestionError, Options};

/// What names a carrier on its further lanes.
type CarrierId = [u8; 32];

/// The id of the carrier whose first lane this is: nobody but its two ends can know it.
fn carrier_id(tls: &TlsStream<TcpStream>) -> Result<CarrierId, rustls::Error> {
    export(tls, b"EXPORTER-farhop-carrier")
}

/// Bytes that the handshake gives to both ends and to nobody else (RFC 8446 §7.5).
fn export<const N: usize>(tls: &TlsStream<TcpStream>, label: &[u8]) -> Result<[u8; N], rustls::Error> {
    match tls {
        TlsStream::Client(tls) => tls.get_ref().1.export_keying_material([0; N], label, None),
        TlsStream::Server(tls) => tls.get_ref().1.export_keying_material([0; N], label, None),
    }
}

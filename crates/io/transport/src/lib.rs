//! Carriers: QUIC and TCP across the long hop, identities, sockets.

pub mod begun;
pub mod capacity;
pub mod congestion;
mod connection;
mod ends;
pub mod hop;
pub mod identity;
pub mod learned;
pub mod memory;
pub mod path;
pub mod quic;
pub mod race;
pub mod socket;
mod surcharge;
pub mod tcp;
mod tls;
mod wake;
pub mod write_ahead;

pub use connection::{Connection, Kind, Name};
pub use tls::ALPN;

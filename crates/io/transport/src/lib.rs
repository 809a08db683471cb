//! Carriers: QUIC across the long hop, identities, sockets.

pub mod congestion;
pub mod hop;
pub mod identity;
pub mod path;
pub mod quic;
pub mod socket;
mod tls;
pub mod write_ahead;

pub use tls::ALPN;

//! Carriers: QUIC across the long hop, identities, sockets.

pub mod identity;
mod tls;

pub use tls::ALPN;

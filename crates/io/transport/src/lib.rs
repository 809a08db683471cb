//! Carriers: QUIC across the long hop, identities, sockets.

//! TLS by rustls alone, so that both sides can use the client's first flight (0-RTT) and what the server may say before the
//! handshake is over.

mod config;
mod stream;

pub(crate) use config::Sessions;
pub(crate) use stream::{Facts, TlsStream};

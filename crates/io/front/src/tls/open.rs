//! Looks at what a client begins with inside a CONNECT, and gives every byte back.

use super::hello::{ClientHello, Reading, read_hello};
use crate::connection::Tunnel;
use bytes::BytesMut;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// What a client begins with. The tunnel still has all of it to read.
#[derive(Debug)]
pub enum Opening {
    /// TLS of a version that [`super::accept`] can answer.
    Hello {
        /// The host that the client wants to reach, in lower case and without a final dot.
        sni: Option<String>,
        /// The protocols it can speak, best first; see [`super::speaks_http`].
        alpn: Vec<Vec<u8>>,
        /// The client.
        tunnel: Tunnel,
    },
    /// Something else: another protocol, or a hello out of the common.
    Other {
        /// The client.
        tunnel: Tunnel,
    },
    /// Nothing, or too little to tell. Clients of some protocols wait for the server to speak first.
    Silent {
        /// The client.
        tunnel: Tunnel,
    },
    /// It has left, or sends nothing more, without a word. Clients, browsers among them, connect ahead of need: it says
    /// nothing about the host.
    Gone,
}

/// Room for the hellos of most browsers, in bytes: one read takes it.
const USUAL: usize = 2048;

/// Waits up to `patience` for a ClientHello.
pub async fn open(mut tunnel: Tunnel, patience: Duration) -> Opening {
    let mut buffer = BytesMut::with_capacity(USUAL);
    let reading = timeout(patience, reading_of(&mut tunnel, &mut buffer)).await;
    if buffer.is_empty() && reading.is_ok() {
        return Opening::Gone;
    }
    tunnel.unread(buffer.freeze());
    match reading.unwrap_or(Reading::NeedMore) {
        Reading::Hello(ClientHello { sni, alpn }) => Opening::Hello { sni, alpn, tunnel },
        Reading::Other => Opening::Other { tunnel },
        Reading::NeedMore => Opening::Silent { tunnel },
    }
}

/// Reads into `buffer` until it is clear what it is, or no more comes.
async fn reading_of(tunnel: &mut Tunnel, buffer: &mut BytesMut) -> Reading {
    loop {
        let reading = read_hello(buffer);
        // Whoever reads on meets the end too.
        if reading != Reading::NeedMore || !matches!(tunnel.read_buf(buffer).await, Ok(count) if count > 0) {
            return reading;
        }
    }
}

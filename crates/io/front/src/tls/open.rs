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
    /// Anything else: another protocol, a hello out of the common, or silence.
    Other {
        /// The client.
        tunnel: Tunnel,
    },
}

/// Waits up to `patience` for a ClientHello. Servers of some protocols speak first: their clients are silent here.
pub async fn open(mut tunnel: Tunnel, patience: Duration) -> Opening {
    let mut buffer = BytesMut::new();
    let hello = timeout(patience, hello_of(&mut tunnel, &mut buffer)).await;
    tunnel.unread(buffer.freeze());
    match hello {
        Ok(Some(ClientHello { sni, alpn })) => Opening::Hello { sni, alpn, tunnel },
        Ok(None) | Err(_) => Opening::Other { tunnel },
    }
}

/// Reads into `buffer` until it is clear what it is.
async fn hello_of(tunnel: &mut Tunnel, buffer: &mut BytesMut) -> Option<ClientHello> {
    loop {
        match read_hello(buffer) {
            Reading::Hello(hello) => return Some(hello),
            Reading::Other => return None,
            Reading::NeedMore => {}
        }
        // Whoever reads on meets the end, or the error, too.
        if !matches!(tunnel.read_buf(buffer).await, Ok(count) if count > 0) {
            return None;
        }
    }
}

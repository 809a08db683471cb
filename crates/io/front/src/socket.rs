//! What a connection needs of the stream below it. No HTTP here.

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, Empty};
use tokio::net::TcpStream;

/// A client's byte stream: TCP, or TLS over it.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Makes the coming close a reset, so that the peer can't take it for an end. Streams that have no
    /// reset close as usual.
    fn reset_on_close(&mut self) {}
}

impl Socket for TcpStream {
    fn reset_on_close(&mut self) {
        // A socket that is gone already needs no reset.
        let _ = self.set_zero_linger();
    }
}

impl Socket for DuplexStream {}

/// Stands where a socket was taken out or closed.
impl Socket for Empty {}

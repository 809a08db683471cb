//! What a connection needs of the stream below it. No HTTP here.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, Empty, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A client's byte stream: TCP, TLS over it, or a socket of this machine.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Makes the coming close a reset, so that the peer can't take it for an end. Streams that have no
    /// reset close as usual.
    fn reset_on_close(&mut self) {}

    /// Reads; true where the first byte is one that the peer has marked as urgent (RFC 9293 §3.8.5). Others are not.
    fn poll_read_marked(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        self.poll_read(cx, buffer).map_ok(|()| false)
    }

    /// Writes one byte, which is urgent. Streams that have no marks write it as any other.
    fn poll_write_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, byte: u8) -> Poll<io::Result<usize>> {
        self.poll_write(cx, &[byte])
    }
}

impl Socket for UnixStream {}

impl Socket for TcpStream {
    fn reset_on_close(&mut self) {
        // A socket that is gone already needs no reset.
        let _ = self.set_zero_linger();
    }

    /// A read ends where a byte is marked (tcp(7)), with more to be read behind. Tokio's own reading takes whatever ends
    /// short of its buffer for all that is there, and would wait for what has come. Here only the end of it counts.
    fn poll_read_marked(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        loop {
            ready!(self.poll_read_ready(cx))?;
            let marked = self.try_io(Interest::READABLE, || farhop_netdev::is_next_urgent(&*self));
            match marked.and_then(|marked| self.try_read_buf(buffer).map(|_| marked)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    fn poll_write_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, byte: u8) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_write_ready(cx))?;
            match self.try_io(Interest::WRITABLE, || farhop_netdev::send_urgent(&*self, byte)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent.map(|()| 1)),
            }
        }
    }
}

impl Socket for DuplexStream {}

/// Stands where a socket was taken out or closed.
impl Socket for Empty {}

//! A connection that stopped being HTTP: raw bytes both ways, half-closes and resets as they come.

use crate::socket::Socket;
use bytes::{Buf, Bytes};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The raw stream after CONNECT or an upgrade; where that came over HTTP/2, one stream of it. Writes leave at once. Reads give first what the client had sent ahead. Shutting down closes
/// the sending half only.
pub struct Tunnel {
    socket: Box<dyn Socket>,
    early: Bytes,
    has_written: bool,
}

impl Tunnel {
    /// A stream that was raw from the start, such as one that was redirected here.
    pub fn over(socket: impl Socket) -> Self {
        Tunnel::new(Box::new(socket), Bytes::new())
    }

    pub(crate) fn new(socket: Box<dyn Socket>, early: Bytes) -> Self {
        Tunnel { socket, early, has_written: false }
    }

    /// Puts bytes that were read back to the front, so that the next reads give them again.
    pub fn unread(&mut self, bytes: Bytes) {
        self.early = match (bytes.is_empty(), self.early.is_empty()) {
            (true, _) => return,
            (false, true) => bytes,
            (false, false) => [&*bytes, &*self.early].concat().into(),
        };
    }

    /// Bytes that the client sent before the tunnel was open; the first reads give them.
    pub fn early(&self) -> &Bytes {
        &self.early
    }

    /// Whether the client has been sent anything by now.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Closes with a reset, as when the far side was reset or could not be reached.
    pub fn reset(mut self) {
        self.socket.reset_on_close();
    }
}

impl Socket for Tunnel {
    fn reset_on_close(&mut self) {
        self.socket.reset_on_close();
    }

    /// What was read before and put back is marked no more.
    fn poll_read_marked(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        if self.early.is_empty() {
            return Pin::new(&mut *self.socket).poll_read_marked(cx, out);
        }
        let count = self.early.len().min(out.remaining());
        out.put_slice(&self.early[..count]);
        self.early.advance(count);
        if self.early.is_empty() {
            self.early = Bytes::new();
        }
        Poll::Ready(Ok(false))
    }

    fn poll_write_urgent(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        byte: u8,
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut *self.socket).poll_write_urgent(cx, byte))?;
        self.has_written |= written > 0;
        Poll::Ready(Ok(written))
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_read_marked(cx, out).map_ok(drop)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, data))?;
        self.has_written |= written > 0;
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, slices))?;
        self.has_written |= written > 0;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel").field("early", &self.early.len()).finish_non_exhaustive()
    }
}

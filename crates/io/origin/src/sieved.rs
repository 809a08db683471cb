//! A connection to an origin whose frames go through the [`Sieve`] before the h2 crate reads them. What is written is not touched.

use crate::driven::Traffic;
use crate::sieve::Sieve;
use bytes::{Buf, BytesMut};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Read at once where a frame that is looked into is not whole, in bytes.
const CHUNK: usize = 4 * 1024;

/// See the module.
pub(crate) struct Sieved<T> {
    inner: T,
    sieve: Sieve,
    traffic: Traffic,
    /// The beginning of a frame that is looked into.
    came: BytesMut,
    /// Is to be handed on.
    out: BytesMut,
}

impl<T> Sieved<T> {
    /// What comes is counted in `traffic`; answers, ahead of what the h2 crate makes of what follows them.
    pub(crate) fn new(inner: T, sieve: Sieve, traffic: Traffic) -> Sieved<T> {
        Sieved { inner, sieve, traffic, came: BytesMut::new(), out: BytesMut::new() }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Sieved<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Sieved { inner, sieve, traffic, came, out } = self.get_mut();
        loop {
            if out.has_remaining() {
                let count = out.len().min(buffer.remaining());
                buffer.put_slice(&out[..count]);
                out.advance(count);
                if out.is_empty() {
                    // An idle connection holds no memory for the longest head that it has had.
                    *out = BytesMut::new();
                }
                return Poll::Ready(Ok(()));
            }
            if came.is_empty() {
                // Bodies stay where they are read to.
                let before = buffer.filled().len();
                ready!(Pin::new(&mut *inner).poll_read(cx, buffer))?;
                let fresh = &buffer.filled()[before..];
                traffic.bytes(fresh.len());
                let passed = sieve.pass(fresh);
                if passed == fresh.len() {
                    return Poll::Ready(Ok(()));
                }
                came.extend_from_slice(&fresh[passed..]);
                buffer.set_filled(before + passed);
                sieve.handle(came, out, Instant::now().into_std());
                traffic.answers(sieve.take_answers());
                if passed > 0 {
                    return Poll::Ready(Ok(()));
                }
            } else {
                came.reserve(CHUNK);
                // `read_buf` keeps nothing between polls.
                let count = ready!(pin!(inner.read_buf(came)).poll(cx))?;
                traffic.bytes(count);
                if count == 0 {
                    // Cut off within a frame: that is the h2 crate's to find.
                    *out = std::mem::take(came);
                    if out.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    continue;
                }
                sieve.handle(came, out, Instant::now().into_std());
                traffic.answers(sieve.take_answers());
            }
            if came.is_empty() {
                *came = BytesMut::new();
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Sieved<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

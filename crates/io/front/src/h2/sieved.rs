//! A client's stream whose frames go through the [`Sieve`] before anyone reads them. What is written is not touched, only
//! whether the socket takes it is noted.

use super::Course;
use super::sieve::Sieve;
use crate::settings::Settings;
use crate::socket::Socket;
use bytes::{Buf, BytesMut};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Read at once of what is looked at, in bytes: heads are short, and connections are mostly idle.
const CHUNK: usize = 4 * 1024;

/// See the module.
pub(super) struct Sieved {
    socket: Box<dyn Socket>,
    sieve: Sieve,
    course: Arc<Course>,
    /// Came, and was not looked at.
    came: BytesMut,
    /// Is to be handed on.
    out: BytesMut,
    settings: Arc<Settings>,
    /// Once the sending half is closed: how long what comes is still taken.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl Sieved {
    pub(super) fn new(
        socket: Box<dyn Socket>,
        sieve: Sieve,
        course: Arc<Course>,
        settings: Arc<Settings>,
    ) -> Sieved {
        Sieved {
            socket,
            sieve,
            course,
            came: BytesMut::new(),
            out: BytesMut::new(),
            settings,
            lingering: None,
        }
    }

    /// Notes whether the socket takes what is written.
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.course.blocked.store(written.is_pending(), SeqCst);
        written
    }
}

impl AsyncRead for Sieved {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Sieved { socket, sieve, course, came, out, .. } = self.get_mut();
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
            if let Some(reason) = sieve.doomed() {
                // All that was handed on has been read; who drives the connection ends it.
                course.doom(reason);
                return Poll::Pending;
            }
            // Bodies go the short way.
            let direct = sieve.passing().min(buffer.remaining());
            if came.is_empty() && direct > 0 {
                let mut part = ReadBuf::new(buffer.initialize_unfilled_to(direct));
                ready!(Pin::new(&mut *socket).poll_read(cx, &mut part))?;
                let count = part.filled().len();
                buffer.advance(count);
                sieve.passed(count);
                return Poll::Ready(Ok(()));
            }
            came.reserve(CHUNK);
            // `read_buf` keeps nothing between polls.
            if ready!(pin!(socket.read_buf(came)).poll(cx))? == 0 {
                return Poll::Ready(Ok(()));
            }
            sieve.handle(came, out, Instant::now().into_std());
            for (stream, priority) in sieve.take_reordered() {
                course.orders.say(stream, priority);
            }
        }
    }
}

impl AsyncWrite for Sieved {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, data);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, data);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Closes in stages (RFC 9112 §9.6), as `serial` does: the sending half first, then, when the client has closed as well or time is
    /// up, the rest. Closing at once would answer what it still says (a stream it wants no more) with a reset, and that can destroy what
    /// it has not read.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Sieved { socket, came, settings, lingering, .. } = self.get_mut();
        let time_is_up = match lingering {
            Some(time_is_up) => time_is_up,
            None => {
                ready!(Pin::new(&mut *socket).poll_shutdown(cx))?;
                lingering.insert(Box::pin(sleep(settings.linger())))
            }
        };
        while time_is_up.as_mut().poll(cx).is_pending() {
            came.clear();
            came.reserve(CHUNK);
            if ready!(pin!(socket.read_buf(came)).poll(cx))? == 0 {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

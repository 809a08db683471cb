//! One HTTP/2 stream as a socket: what an extended CONNECT turns into (RFC 8441 §4). Raw bytes, no HTTP.

use super::response_body::poll_room;
use super::{Parting, Place, failure, refusal};
use crate::socket::Socket;
use ::h2::{Reason, RecvStream, SendStream};
use bytes::{Buf, Bytes};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What one write takes at most, in bytes: it is copied.
const LONGEST_WRITE: usize = 64 * 1024;

/// Both halves of a stream. Dropped before it is shut down, it is cancelled.
pub(super) struct Stream {
    /// Until it is dropped.
    sent: Option<SendStream<Bytes>>,
    received: RecvStream,
    unread: Bytes,
    shut_down: bool,
    resets: bool,
    place: Arc<Place>,
}

impl Stream {
    pub(super) fn new(sent: SendStream<Bytes>, received: RecvStream, place: Arc<Place>) -> Self {
        let sent = Some(sent);
        Stream { sent, received, unread: Bytes::new(), shut_down: false, resets: false, place }
    }

    fn send(&mut self, data: Bytes, end: bool) -> io::Result<()> {
        let Some(stream) = &mut self.sent else { return Err(io::ErrorKind::NotConnected.into()) };
        let sent = stream.send_data(data, end);
        sent.map_err(|error| refusal(error, |cx| stream.poll_reset(cx)))
    }
}

impl Socket for Stream {
    fn reset_on_close(&mut self) {
        self.resets = true;
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() {
            match ready!(self.received.poll_data(cx)) {
                Some(Ok(data)) => self.unread = data,
                Some(Err(error)) => return Poll::Ready(Err(failure(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.unread.len().min(out.remaining());
        out.put_slice(&self.unread[..count]);
        self.unread.advance(count);
        // Of a stream that is gone nothing need be said.
        let _ = self.received.flow_control().release_capacity(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if self.shut_down {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let wanted = data.len().min(LONGEST_WRITE);
        let Some(stream) = &mut self.sent else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let count = ready!(poll_room(stream, wanted, cx))?.min(wanted);
        Poll::Ready(self.send(Bytes::copy_from_slice(&data[..count]), false).map(|()| count))
    }

    /// The connection's own task writes what it has at once.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.shut_down {
            return Poll::Ready(Ok(()));
        }
        self.shut_down = true;
        Poll::Ready(self.send(Bytes::new(), true))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(stream) = self.sent.take() {
            // RFC 8441 §4: what a TCP reset is elsewhere.
            let why = self.resets.then_some(Reason::CANCEL);
            self.place.course.part(Parting { stream, why });
        }
    }
}

//! One HTTP/2 stream as a socket: what an extended CONNECT turns into (RFC 8441 §4). Raw bytes, no HTTP.

use super::response_body::poll_room;
use super::{Place, failure, refusal};
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
    sent: SendStream<Bytes>,
    received: RecvStream,
    unread: Bytes,
    shut_down: bool,
    resets: bool,
    _place: Arc<Place>,
}

impl Stream {
    pub(super) fn new(sent: SendStream<Bytes>, received: RecvStream, place: Arc<Place>) -> Self {
        Stream { sent, received, unread: Bytes::new(), shut_down: false, resets: false, _place: place }
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
        let count = ready!(poll_room(&mut self.sent, wanted, cx))?.min(wanted);
        let data = Bytes::copy_from_slice(&data[..count]);
        let sent = self.sent.send_data(data, false).map(|()| count);
        Poll::Ready(sent.map_err(|error| refusal(error, |cx| self.sent.poll_reset(cx))))
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
        let sent = self.sent.send_data(Bytes::new(), true);
        Poll::Ready(sent.map_err(|error| refusal(error, |cx| self.sent.poll_reset(cx))))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.resets {
            // RFC 8441 §4: what a TCP reset is elsewhere.
            self.sent.send_reset(Reason::CANCEL);
        }
    }
}

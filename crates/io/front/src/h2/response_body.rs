//! The body of a final HTTP/2 response; see [`crate::connection::ResponseBody`].

use super::{Parting, Place, failure, refusal};
use crate::connection::{Departure, WriteError};
use crate::h1::{Framing, allowed_trailers};
use crate::settings::Settings;
use ::h2::{Reason, SendStream};
use bytes::Bytes;
use http::HeaderMap;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::time::timeout;

/// The body of a response under way. Dropped before it is finished, it resets the stream.
pub(crate) struct ResponseBody {
    /// `None` once the response is finished or given up. Under a lock only because to be told of a reset takes `&mut`.
    stream: Option<Mutex<SendStream<Bytes>>>,
    /// What is still to come.
    framing: Framing,
    queued: VecDeque<Bytes>,
    settings: Arc<Settings>,
    place: Arc<Place>,
}

impl ResponseBody {
    pub(super) fn new(
        stream: SendStream<Bytes>,
        framing: Framing,
        place: Arc<Place>,
        settings: Arc<Settings>,
    ) -> Self {
        let stream = Some(Mutex::new(stream));
        ResponseBody { stream, framing, queued: VecDeque::new(), settings, place }
    }

    /// Sends some of the body and waits until the client's window has room for it.
    pub(crate) async fn send(&mut self, data: Bytes) -> Result<(), WriteError> {
        self.queue(data)?;
        self.flush(false).await
    }

    /// Queues some of the body.
    pub(super) fn queue(&mut self, data: Bytes) -> Result<(), WriteError> {
        if self.stream.is_none() {
            return Err(WriteError::closed());
        }
        match &mut self.framing {
            Framing::None => return Ok(()),
            Framing::Length(rest) => match rest.checked_sub(data.len() as u64) {
                Some(left) => *rest = left,
                None => {
                    self.give_up();
                    return Err(WriteError::Length);
                }
            },
            Framing::Chunked | Framing::UntilClose => {}
        }
        if !data.is_empty() {
            self.queued.push_back(data);
        }
        Ok(())
    }

    /// Ends the response.
    pub(crate) async fn finish(mut self, trailers: Option<&HeaderMap>) -> Result<(), WriteError> {
        match self.framing {
            // The head has ended the stream.
            Framing::None => return Ok(()),
            Framing::Length(rest) if rest > 0 => return Err(WriteError::Length),
            _ => {}
        }
        let trailers = trailers.map(allowed_trailers).filter(|trailers| !trailers.is_empty());
        self.flush(trailers.is_none()).await?;
        let Some(trailers) = trailers else { return Ok(()) };
        let Some(stream) = self.stream.take() else { return Err(WriteError::closed()) };
        let mut stream = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
        let sent = stream.send_trailers(trailers);
        let sent = sent.map_err(|error| refusal(error, |cx| stream.poll_reset(cx)).into());
        self.let_go(stream);
        sent
    }

    /// Hands all that is queued to the connection as the client's windows allow; with `end`, the end of the stream too.
    async fn flush(&mut self, end: bool) -> Result<(), WriteError> {
        let patience = self.settings.write_timeout;
        while end || !self.queued.is_empty() {
            let written = match timeout(patience, poll_fn(|cx| self.poll_write(end, cx))).await {
                Ok(written) => written,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
            if let Err(error) = written {
                self.give_up();
                return Err(error.into());
            }
            if end && self.queued.is_empty() {
                if let Some(stream) = self.stream.take() {
                    self.let_go(stream.into_inner().unwrap_or_else(PoisonError::into_inner));
                }
                break;
            }
        }
        Ok(())
    }

    /// Hands over the first piece that is queued, or some of it. The last one carries the `end`.
    fn poll_write(&mut self, end: bool, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let stream = stream.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut piece = Bytes::new();
        if let Some(first) = self.queued.front_mut() {
            let room = ready!(poll_room(stream, first.len(), cx))?;
            piece = first.split_to(room.min(first.len()));
            if first.is_empty() {
                self.queued.pop_front();
            }
        }
        let last = end && self.queued.is_empty();
        let sent = stream.send_data(piece, last);
        Poll::Ready(sent.map_err(|error| refusal(error, |cx| stream.poll_reset(cx))))
    }

    /// Resolves when the client cancels the response, or the connection breaks.
    pub(crate) async fn departure(&self) -> Departure {
        if let Some(stream) = &self.stream {
            let reset = poll_fn(|cx| stream.lock().unwrap_or_else(PoisonError::into_inner).poll_reset(cx));
            // An error is the connection's.
            let _ = reset.await;
        }
        Departure::Reset
    }

    /// Gives the response up, so that the client knows it is incomplete.
    fn give_up(&mut self) {
        let Some(stream) = self.stream.take() else { return };
        let stream = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
        match self.framing {
            Framing::None => self.let_go(stream),
            _ => self.place.course.part(Parting { stream, why: Some(Reason::INTERNAL_ERROR) }),
        }
    }

    /// Lets a stream go whose response is whole.
    fn let_go(&self, stream: SendStream<Bytes>) {
        if self.place.is_unread() {
            self.place.course.part(Parting { stream, why: None });
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// How many of `wanted` bytes may be sent now; never none.
pub(super) fn poll_room(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    stream.reserve_capacity(wanted);
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Poll::Ready(Err(failure(error))),
            None => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
    Poll::Ready(Ok(stream.capacity()))
}

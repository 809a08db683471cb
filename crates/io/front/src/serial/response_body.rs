//! The body of a final HTTP/1 response; see [`crate::connection::ResponseBody`].

use super::Shared;
use super::responder::flush;
use super::state::Answer;
use crate::connection::{Departure, WriteError};
use crate::h1::{Framing, encode_end, encode_line};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;

/// The body of a response under way. Dropped before it is finished, it closes the connection.
pub(crate) struct ResponseBody {
    /// `None` once the response is finished or given up.
    shared: Option<Arc<Shared>>,
}

impl ResponseBody {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        ResponseBody { shared: Some(shared) }
    }

    /// Sends some of the body and waits until the socket has taken it.
    pub(crate) async fn send(&mut self, data: Bytes) -> Result<(), WriteError> {
        self.queue(data)?;
        match &self.shared {
            Some(shared) => flush(shared).await,
            None => Err(WriteError::closed()),
        }
    }

    /// Queues some of the body in its framing.
    pub(super) fn queue(&mut self, data: Bytes) -> Result<(), WriteError> {
        let Some(shared) = &self.shared else { return Err(WriteError::closed()) };
        let mut state = shared.state();
        let Answer::Streaming(framing) = state.answer else { return Err(WriteError::closed()) };
        if data.is_empty() {
            return Ok(());
        }
        match framing {
            Framing::None => {}
            Framing::UntilClose => state.out.push_back(data),
            Framing::Chunked => {
                // RFC 9112 §7.1; never an empty chunk, which would be the last one.
                let line = encode_line(data.len());
                state.out.extend([line, data, Bytes::from_static(b"\r\n")]);
            }
            Framing::Length(rest) => {
                let Some(rest) = rest.checked_sub(data.len() as u64) else {
                    drop(state);
                    self.give_up();
                    return Err(WriteError::Length);
                };
                state.answer = Answer::Streaming(Framing::Length(rest));
                state.out.push_back(data);
            }
        }
        Ok(())
    }

    /// Ends the response.
    pub(crate) async fn finish(mut self, trailers: Option<&HeaderMap>) -> Result<(), WriteError> {
        let shared = self.end(trailers)?;
        flush(&shared).await
    }

    /// Queues the end of the body. From here on the response is complete, even if nobody waits for the flush: the
    /// connection does it.
    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<Arc<Shared>, WriteError> {
        let Some(shared) = self.shared.clone() else { return Err(WriteError::closed()) };
        let mut state = shared.state();
        let Answer::Streaming(framing) = state.answer else { return Err(WriteError::closed()) };
        match framing {
            Framing::Length(rest) if rest > 0 => {
                drop(state);
                self.give_up();
                return Err(WriteError::Length);
            }
            Framing::Chunked => state.out.push_back(encode_end(trailers)),
            _ => {}
        }
        state.answer = Answer::Settled;
        state.wake();
        drop(state);
        self.shared = None;
        Ok(shared)
    }

    /// Resolves when the client is seen to have left.
    pub(crate) async fn departure(&self) -> Departure {
        match &self.shared {
            Some(shared) => shared.departure().await,
            None => Departure::Reset,
        }
    }

    /// Lets the drop of this handle do nothing.
    pub(super) fn disarm(mut self) {
        self.shared = None;
    }

    /// Gives the response up, so that the client knows it is incomplete.
    fn give_up(&mut self) {
        if let Some(shared) = self.shared.take() {
            let mut state = shared.state();
            // RFC 9112 §8: chunked and sized bodies show that they are cut short, and a plain close lets the client
            // keep what it has. A body that only ends with the connection needs a reset to show it.
            let sized = matches!(state.answer, Answer::Streaming(Framing::Chunked | Framing::Length(_)));
            state.close(!sized);
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.give_up();
    }
}

//! The request body as the application reads it, while the response may already be written.

use super::Shared;
use super::state::{BodyError, Piece};
use crate::h1::Framing;
use bytes::Bytes;
use http::HeaderMap;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::time::timeout;

/// The body of one request. Reading is what takes bytes from the client: who doesn't read holds the client back.
///
/// Let go before its end, the rest is drained within bounds after the response, else the connection is closed.
pub struct RequestBody {
    shared: Arc<Shared>,
    framing: Framing,
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl RequestBody {
    pub(super) fn new(shared: Arc<Shared>, framing: Framing) -> Self {
        RequestBody { shared, framing, trailers: None, ended: framing == Framing::None }
    }

    /// How the client delimits the body: its length in bytes where that is known.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The next bytes, never empty; `None` after the last. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body is malformed or cut short, or the client paused too long: the request must not be taken as complete.
    pub async fn data(&mut self) -> Result<Option<Bytes>, BodyError> {
        if self.ended {
            return Ok(None);
        }
        let piece = poll_fn(|cx| self.shared.state().poll_body(cx));
        match timeout(self.shared.settings.body_timeout, piece).await {
            Ok(Ok(Piece::Data(data))) => Ok(Some(data)),
            Ok(Ok(Piece::End(trailers))) => {
                self.ended = true;
                self.trailers = (!trailers.is_empty()).then_some(trailers);
                Ok(None)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.shared.state().fail_reading();
                Err(BodyError::Stalled)
            }
        }
    }

    /// The trailers, once [`RequestBody::data`] has given `None`.
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.body_held = false;
        state.wake();
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBody").field("framing", &self.framing).finish_non_exhaustive()
    }
}

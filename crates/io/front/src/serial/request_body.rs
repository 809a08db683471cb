//! The body of an HTTP/1 request; see [`crate::connection::RequestBody`].

use super::Shared;
use super::state::Piece;
use crate::connection::BodyError;
use crate::h1::Framing;
use bytes::Bytes;
use http::HeaderMap;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::time::timeout;

/// The body of one request.
pub(crate) struct RequestBody {
    shared: Arc<Shared>,
    framing: Framing,
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl RequestBody {
    pub(super) fn new(shared: Arc<Shared>, framing: Framing) -> Self {
        RequestBody { shared, framing, trailers: None, ended: framing == Framing::None }
    }

    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    pub(crate) async fn data(&mut self) -> Result<Option<Bytes>, BodyError> {
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

    pub(crate) fn trailers(&mut self) -> Option<HeaderMap> {
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

//! The request body as the application reads it, while the response may already be written.

use super::BodyError;
use crate::h1::Framing;
use crate::{h2, serial};
use bytes::Bytes;
use http::HeaderMap;

/// The body of one request. Reading is what takes bytes from the client: who doesn't read holds the client back.
///
/// Let go before its end: over HTTP/1 the rest is drained within bounds after the response, else the connection is
/// closed; over HTTP/2 the client is told to stop.
pub struct RequestBody(Inner);

enum Inner {
    Serial(serial::RequestBody),
    Stream(h2::RequestBody),
}

impl RequestBody {
    /// How the client delimits the body: its length in bytes where that is known.
    pub fn framing(&self) -> Framing {
        match &self.0 {
            Inner::Serial(body) => body.framing(),
            Inner::Stream(body) => body.framing(),
        }
    }

    /// The next bytes, never empty; `None` after the last. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body is malformed or cut short, or the client paused too long: the request must not be taken as complete.
    pub async fn data(&mut self) -> Result<Option<Bytes>, BodyError> {
        match &mut self.0 {
            Inner::Serial(body) => body.data().await,
            Inner::Stream(body) => body.data().await,
        }
    }

    /// The trailers, once [`RequestBody::data`] has given `None`.
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        match &mut self.0 {
            Inner::Serial(body) => body.trailers(),
            Inner::Stream(body) => body.trailers(),
        }
    }
}

impl From<serial::RequestBody> for RequestBody {
    fn from(body: serial::RequestBody) -> Self {
        RequestBody(Inner::Serial(body))
    }
}

impl From<h2::RequestBody> for RequestBody {
    fn from(body: h2::RequestBody) -> Self {
        RequestBody(Inner::Stream(body))
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBody").field("framing", &self.framing()).finish_non_exhaustive()
    }
}

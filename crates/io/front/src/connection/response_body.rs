//! The body of a final response, written in the framing that its head announced.

use super::{Departure, WriteError};
use crate::{h2, serial};
use bytes::Bytes;
use http::HeaderMap;

/// The body of a response under way. Dropped without [`ResponseBody::finish`], it is aborted: the client sees a
/// connection that closed before the body's end, or a stream that was reset.
pub struct ResponseBody(Inner);

enum Inner {
    Serial(serial::ResponseBody),
    Stream(h2::ResponseBody),
}

impl ResponseBody {
    /// Sends some of the body and waits until the client's window and the socket have taken it. If the future is
    /// dropped, the bytes are sent with what follows. Bytes for a response that has no body (HEAD, 204, 304) are left
    /// out.
    ///
    /// # Errors
    /// The client is gone or takes nothing, or the body exceeds its Content-Length. The response is aborted then.
    pub async fn send(&mut self, data: Bytes) -> Result<(), WriteError> {
        match &mut self.0 {
            Inner::Serial(body) => body.send(data).await,
            Inner::Stream(body) => body.send(data).await,
        }
    }

    /// Ends the response. Trailers reach clients of chunked bodies and of HTTP/2; elsewhere they are left out
    /// (RFC 9110 §6.5.1).
    ///
    /// # Errors
    /// The client is gone, or the body is shorter than its Content-Length: it is aborted then.
    pub async fn finish(self, trailers: Option<&HeaderMap>) -> Result<(), WriteError> {
        match self.0 {
            Inner::Serial(body) => body.finish(trailers).await,
            Inner::Stream(body) => body.finish(trailers).await,
        }
    }

    /// Gives the response up, so that the client knows it is incomplete.
    pub fn abort(self) {
        drop(self);
    }

    /// Resolves when the client is seen to have left; see [`super::Responder::departure`].
    pub async fn departure(&self) -> Departure {
        match &self.0 {
            Inner::Serial(body) => body.departure().await,
            Inner::Stream(body) => body.departure().await,
        }
    }
}

impl From<serial::ResponseBody> for ResponseBody {
    fn from(body: serial::ResponseBody) -> Self {
        ResponseBody(Inner::Serial(body))
    }
}

impl From<h2::ResponseBody> for ResponseBody {
    fn from(body: h2::ResponseBody) -> Self {
        ResponseBody(Inner::Stream(body))
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResponseBody")
    }
}

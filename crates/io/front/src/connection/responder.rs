//! Answers one request: informational heads, then either a final head with its body, or a tunnel.

use super::{Departure, Priorities, Protocol, ResponseBody, Tunnel, WriteError};
use crate::{h2, serial};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// The head of a response to write.
#[derive(Debug, Clone)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// End-to-end fields. A Content-Length among them frames the body; fields of the connection are replaced.
    pub fields: HeaderMap,
}

/// Where the answer to one request goes. Dropped without an answer, it closes the connection, or resets the stream of
/// HTTP/2.
pub struct Responder(Inner);

enum Inner {
    Serial(serial::Responder),
    Stream(h2::Responder),
}

impl Responder {
    /// In what the client has asked.
    pub fn protocol(&self) -> Protocol {
        match &self.0 {
            Inner::Serial(_) => Protocol::Http1,
            Inner::Stream(_) => Protocol::Http2,
        }
    }

    /// Writes an informational head (100, 103, …). Clients of HTTP/1.0 are not sent one.
    ///
    /// # Errors
    /// The status is not informational or is 101, or the client is gone.
    pub async fn informational(&mut self, head: Head) -> Result<(), WriteError> {
        if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(WriteError::Status(head.status));
        }
        match &mut self.0 {
            Inner::Serial(responder) => responder.informational(head).await,
            Inner::Stream(responder) => responder.informational(head),
        }
    }

    /// Writes the final head, and with it the body bytes that are already at hand (`first` may be empty).
    ///
    /// # Errors
    /// The head frames nothing, `first` exceeds its length, or the client is gone.
    pub async fn start(self, head: Head, first: Bytes) -> Result<ResponseBody, WriteError> {
        Ok(match self.0 {
            Inner::Serial(responder) => responder.start(head, first).await?.into(),
            Inner::Stream(responder) => responder.start(head, first).await?.into(),
        })
    }

    /// Writes a response whose body is at hand, in one go; sets Content-Length.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn respond(self, head: Head, body: Bytes) -> Result<(), WriteError> {
        match self.0 {
            Inner::Serial(responder) => responder.respond(head, body).await,
            Inner::Stream(responder) => responder.respond(head, body).await,
        }
    }

    /// Answers CONNECT with 2xx, or a request to upgrade with 101, and hands over the stream with the bytes that the
    /// client sent ahead. Where the upgrade came as an extended CONNECT (RFC 8441), 101 is said in its way.
    ///
    /// # Errors
    /// The status opens no tunnel for this request, or the client is gone.
    pub async fn tunnel(self, head: Head) -> Result<Tunnel, WriteError> {
        match self.0 {
            Inner::Serial(responder) => responder.tunnel(head).await,
            Inner::Stream(responder) => responder.tunnel(head),
        }
    }

    /// Resolves when the client is seen to have left, so that its request can be given up. Over HTTP/1 it is not
    /// noticed while the request body is unread (its reader will be told) or when requests sent ahead fill the buffer.
    pub async fn departure(&self) -> Departure {
        match &self.0 {
            Inner::Serial(responder) => responder.departure().await,
            Inner::Stream(responder) => responder.departure().await,
        }
    }

    /// What the client says from now on of the priority of this response, which may be sent by then.
    pub fn priorities(&self) -> Priorities {
        Priorities::new(match &self.0 {
            Inner::Serial(_) => None,
            Inner::Stream(responder) => Some(responder.order()),
        })
    }

    /// Has the client ask once more on another connection, as if nothing had been done with the request (RFC 9113 §8.7), and lets this
    /// connection end. Browsers do so by themselves, with bodies too.
    ///
    /// # Errors
    /// HTTP/1 has no word for it: the client is still to be answered.
    pub fn refuse(self) -> Result<(), Responder> {
        match self.0 {
            Inner::Serial(_) => Err(self),
            Inner::Stream(mut responder) => {
                responder.close_after();
                responder.refuse();
                Ok(())
            }
        }
    }

    /// Lets this be the last exchange of the connection, as when the program is asked to end. Over HTTP/2 those under
    /// way go on.
    pub fn close_after(&mut self) {
        match &mut self.0 {
            Inner::Serial(responder) => responder.close_after(),
            Inner::Stream(responder) => responder.close_after(),
        }
    }
}

impl From<serial::Responder> for Responder {
    fn from(responder: serial::Responder) -> Self {
        Responder(Inner::Serial(responder))
    }
}

impl From<h2::Responder> for Responder {
    fn from(responder: h2::Responder) -> Self {
        Responder(Inner::Stream(responder))
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Responder")
    }
}

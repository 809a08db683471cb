//! A client's connection as the application sees it, whatever the protocol below: requests come in, each with a body
//! to read and a response to write, both at the same time if need be. What to answer is the application's.
//!
//! [`Connection::next_request`] gives an [`Exchange`]; its parts own what they need and may move to other tasks. Over
//! HTTP/1 the next request is read when the response is complete and the request body is finished or let go. Over
//! HTTP/2 requests come beside each other: who serves one before asking for the next makes the others wait, so spawn
//! a task for each.

mod endings;
mod priorities;
mod request_body;
mod responder;
mod response_body;
mod tunnel;

pub use endings::{BodyError, Departure, RequestError, WriteError};
pub use priorities::Priorities;
pub use request_body::RequestBody;
pub use responder::{Head, Responder};
pub use response_body::ResponseBody;
pub use tunnel::Tunnel;

use crate::h1::RequestHead;
use crate::scope::Scope;
use crate::settings::Settings;
use crate::socket::Socket;
use crate::{h2, serial};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A request that came in, and the means to answer it.
#[derive(Debug)]
pub struct Exchange {
    /// What is asked for.
    pub head: RequestHead,
    /// The body as it arrives; empty when there is none.
    pub body: RequestBody,
    /// Where the answer goes.
    pub responder: Responder,
}

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A client's connection.
pub struct Connection {
    inner: Inner,
    _permit: Option<OwnedSemaphorePermit>,
}

enum Inner {
    Serial(serial::Connection),
    Streams(h2::Connection),
}

impl Connection {
    /// Serves an accepted stream as an explicit proxy does, over HTTP/1.
    pub fn new(socket: impl Socket, settings: Arc<Settings>) -> Self {
        let inner = Inner::Serial(serial::Connection::new(Box::new(socket), None, settings));
        Connection { inner, _permit: None }
    }

    /// Serves a stream inside a CONNECT, deciphered: its requests are for `scope` and come out with absolute targets.
    /// HTTP/2 spawns a task on the current tokio runtime.
    pub fn within(socket: impl Socket, protocol: Protocol, scope: Scope, settings: Arc<Settings>) -> Self {
        let socket = Box::new(socket);
        let inner = match protocol {
            Protocol::Http1 => Inner::Serial(serial::Connection::new(socket, Some(scope), settings)),
            Protocol::Http2 => Inner::Streams(h2::Connection::new(socket, scope, settings)),
        };
        Connection { inner, _permit: None }
    }

    /// Holds a place among the connections served at once until this one is dropped.
    pub(crate) fn holding(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self._permit = permit;
        self
    }

    /// What is spoken: over HTTP/2 several requests can be under way at a time.
    pub fn protocol(&self) -> Protocol {
        match self.inner {
            Inner::Serial(_) => Protocol::Http1,
            Inner::Streams(_) => Protocol::Http2,
        }
    }

    /// Waits for the first words of the client, which [`Connection::next_request`] reads all the same, and tells whether they
    /// are HTTP; `None` when the connection has ended before that was clear. Over HTTP/2 the client has named it, and is not waited for.
    pub async fn speaks_http(&mut self) -> Option<bool> {
        match &mut self.inner {
            Inner::Serial(connection) => connection.speaks_http().await,
            Inner::Streams(_) => Some(true),
        }
    }

    /// The next request; `None` when the connection has ended in peace or was handed over as a tunnel. Dropping the
    /// future while it waits loses nothing. Over HTTP/2 it gives further requests while earlier ones are under way,
    /// and dropping the connection lets those end: the client is told to send no more (GOAWAY).
    ///
    /// # Errors
    /// The request may not be forwarded, came too slowly, or the connection failed. It is closed then.
    pub async fn next_request(&mut self) -> Result<Option<Exchange>, RequestError> {
        match &mut self.inner {
            Inner::Serial(connection) => connection.next_request().await,
            Inner::Streams(connection) => connection.next_request().await,
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("protocol", &self.protocol()).finish_non_exhaustive()
    }
}

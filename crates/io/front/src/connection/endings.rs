//! How requests, bodies and connections end other than well. Values only.

use crate::h1::Refusal;
use http::StatusCode;
use std::io;

/// Why a connection ended other than in peace. It is closed by then; what there was to tell the client is told.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request may not be forwarded; the client has been given [`Refusal::status`]. HTTP/1 only: over HTTP/2 such
    /// a request is answered in the same way, but ends no more than its stream.
    #[error("request refused: {0}")]
    Refused(Refusal),
    /// The head did not arrive in time; the client has been given 408.
    #[error("the request head took too long")]
    HeadTimedOut,
    /// The connection failed.
    #[error("client connection: {0}")]
    Connection(#[from] io::Error),
}

/// Why a request body has no next piece.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The client's framing is wrong, or the connection ended within the body.
    #[error("request body: {0}")]
    Malformed(#[from] Refusal),
    /// The client paused for longer than allowed.
    #[error("request body: the client sent nothing for too long")]
    Stalled,
    /// The connection or the stream failed.
    #[error("request body: {0}")]
    Connection(#[from] io::Error),
}

/// Why a response could not be written. The connection, or the stream of HTTP/2, is closed by then.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The client is gone, or took nothing for too long.
    #[error("response: {0}")]
    Connection(#[from] io::Error),
    /// The head to write holds a Content-Length that frames nothing.
    #[error("response head: {0}")]
    Head(Refusal),
    /// The status doesn't belong where it was used.
    #[error("response status {0} can't be sent here")]
    Status(StatusCode),
    /// More or fewer bytes than the Content-Length said.
    #[error("the response body differs from its content-length")]
    Length,
}

impl WriteError {
    /// The client is gone.
    pub(crate) fn closed() -> WriteError {
        WriteError::Connection(io::ErrorKind::NotConnected.into())
    }
}

/// How a client left while its response was awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// The client sends nothing more, and for the grace of the settings nothing was written to it. Browsers end their
    /// input when they close the connection; a script that closed its sending half may still wait. HTTP/1 only.
    EndOfInput,
    /// The connection is broken, or the client cancelled the stream.
    Reset,
}

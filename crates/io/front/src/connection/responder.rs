//! Answers one request: informational heads, then either a final head with its body, or a tunnel.

use super::response_body::ResponseBody;
use super::state::{Answer, Departure};
use super::tunnel::Tunnel;
use super::{Shared, date};
use crate::h1::{Refusal, RequestHead, encode_head, plan, without_body, without_framing};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use std::io;
use std::sync::Arc;

/// The head of a response to write.
#[derive(Debug, Clone)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// End-to-end fields. A Content-Length among them frames the body; fields of the connection are replaced.
    pub fields: HeaderMap,
}

/// Why a response could not be written. The connection is closed by then.
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

/// Where the answer to one request goes. Dropped without an answer, it closes the connection.
pub struct Responder {
    /// Taken by whoever answers.
    shared: Option<Arc<Shared>>,
    method: Method,
    version: Version,
    /// The client may hold its body back until it is told to go on.
    awaits_continue: bool,
}

impl Responder {
    pub(super) fn new(shared: Arc<Shared>, head: &RequestHead) -> Self {
        Responder {
            shared: Some(shared),
            method: head.method.clone(),
            version: head.version,
            awaits_continue: head.expects_continue,
        }
    }

    /// Writes an informational head (100, 103, …). Clients of HTTP/1.0 are not sent one.
    ///
    /// # Errors
    /// The status is not informational or is 101, or the client is gone.
    pub async fn informational(&mut self, head: Head) -> Result<(), WriteError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(WriteError::Status(head.status));
        }
        // RFC 9110 §15.2.
        if self.version == Version::HTTP_10 {
            return Ok(());
        }
        self.awaits_continue &= head.status != StatusCode::CONTINUE;
        let mut fields = head.fields;
        without_framing(&mut fields);
        shared.state().out.push_back(encode_head(head.status, &fields));
        flush(shared).await
    }

    /// Writes the final head, and with it the body bytes that are already at hand (`first` may be empty).
    ///
    /// # Errors
    /// The head frames nothing, `first` exceeds its length, or the client is gone.
    pub async fn start(mut self, head: Head, first: Bytes) -> Result<ResponseBody, WriteError> {
        let shared = self.begin_answer(head)?;
        let mut body = ResponseBody::new(shared);
        body.send(first).await?;
        Ok(body)
    }

    /// Writes a response whose body is at hand, in one go; sets Content-Length.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn respond(mut self, head: Head, body: Bytes) -> Result<(), WriteError> {
        let Head { status, mut fields } = head;
        if !without_body(&self.method, status) {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let shared = self.begin_answer(Head { status, fields })?;
        let mut response = ResponseBody::new(shared);
        response.queue(body)?;
        response.finish(None).await
    }

    /// Queues the final head.
    fn begin_answer(&mut self, head: Head) -> Result<Arc<Shared>, WriteError> {
        let Head { status, mut fields } = head;
        if status.is_informational() || (self.method == Method::CONNECT && status.is_success()) {
            return Err(WriteError::Status(status));
        }
        let Some(shared) = self.shared.take() else { return Err(closed()) };
        let mut state = shared.state();
        if state.closed {
            return Err(closed());
        }
        // What was sent after a CONNECT that is refused was meant for the tunnel, and a body that the client holds
        // back may or may not come (RFC 9110 §10.1.1): in both cases the next request could not be told apart.
        let body_may_come = self.awaits_continue && !state.decoder.is_ended();
        let persists = state.persists && self.method != Method::CONNECT && !body_may_come;
        let plan = match plan(&self.method, self.version, status, &mut fields, persists) {
            Ok(plan) => plan,
            Err(refusal) => {
                state.close(false);
                return Err(WriteError::Head(refusal));
            }
        };
        // RFC 9110 §6.6.1.
        fields.entry(DATE).or_insert_with(date);
        state.persists = plan.persists;
        state.out.push_back(encode_head(status, &fields));
        state.answer = Answer::Streaming(plan.framing);
        drop(state);
        Ok(shared)
    }

    /// Answers CONNECT with 2xx, or an upgrade with 101, and hands over the stream with the bytes that the client
    /// sent ahead.
    ///
    /// # Errors
    /// The status opens no tunnel for this method, or the client is gone.
    pub async fn tunnel(mut self, head: Head) -> Result<Tunnel, WriteError> {
        let opens = if self.method == Method::CONNECT {
            head.status.is_success()
        } else {
            head.status == StatusCode::SWITCHING_PROTOCOLS && self.version == Version::HTTP_11
        };
        if !opens {
            return Err(WriteError::Status(head.status));
        }
        let Some(shared) = self.shared.take() else { return Err(closed()) };
        let mut fields = head.fields;
        without_framing(&mut fields);
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            // RFC 9110 §7.8.
            fields.insert(http::header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        shared.state().out.push_back(encode_head(head.status, &fields));
        let guard = ResponseBody::new(shared.clone());
        flush(&shared).await?;
        guard.disarm();
        let (socket, early) = shared.state().hand_over();
        Ok(Tunnel::new(socket, early))
    }

    /// Resolves when the client is seen to have left, so that its request can be given up. It is not noticed while
    /// the request body is unread (its reader will be told) or when requests sent ahead fill the buffer.
    pub async fn departure(&self) -> Departure {
        match &self.shared {
            Some(shared) => shared.departure().await,
            None => Departure::Reset,
        }
    }

    /// Lets this be the last exchange of the connection, as when the program is asked to end.
    pub fn close_after(&mut self) {
        if let Some(shared) = &self.shared {
            shared.state().persists = false;
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.state().close(true);
        }
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder").field("method", &self.method).finish_non_exhaustive()
    }
}

pub(super) fn closed() -> WriteError {
    WriteError::Connection(io::ErrorKind::NotConnected.into())
}

/// Writes what is queued; closes the connection when that fails.
pub(super) async fn flush(shared: &Arc<Shared>) -> Result<(), WriteError> {
    let result = shared.flush().await;
    if result.is_err() {
        shared.state().close(true);
    }
    Ok(result?)
}

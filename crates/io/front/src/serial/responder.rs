//! Answers one HTTP/1 request; see [`crate::connection::Responder`].

use super::Shared;
use super::response_body::ResponseBody;
use super::state::Answer;
use crate::answers::date;
use crate::connection::{Departure, Head, Tunnel, WriteError};
use crate::h1::{RequestHead, encode_head, plan, without_body, without_framing};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use std::sync::Arc;

/// Where the answer to one request goes.
pub(crate) struct Responder {
    /// Taken by whoever answers.
    shared: Option<Arc<Shared>>,
    method: Method,
    version: Version,
    /// The protocol that the client asks to go on with.
    upgrade: Option<&'static str>,
    /// The client may hold its body back until it is told to go on.
    awaits_continue: bool,
}

impl Responder {
    pub(super) fn new(shared: Arc<Shared>, head: &RequestHead) -> Self {
        Responder {
            shared: Some(shared),
            method: head.method.clone(),
            version: head.version,
            upgrade: head.upgrade,
            awaits_continue: head.expects_continue,
        }
    }

    /// Writes an informational head.
    pub(crate) async fn informational(&mut self, head: Head) -> Result<(), WriteError> {
        let Some(shared) = &self.shared else { return Ok(()) };
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

    /// Writes the final head and the first bytes of the body.
    pub(crate) async fn start(mut self, head: Head, first: Bytes) -> Result<ResponseBody, WriteError> {
        let shared = self.begin_answer(head)?;
        let mut body = ResponseBody::new(shared);
        body.send(first).await?;
        Ok(body)
    }

    /// Writes a whole response.
    pub(crate) async fn respond(mut self, head: Head, body: Bytes) -> Result<(), WriteError> {
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
        let Some(shared) = self.shared.take() else { return Err(WriteError::closed()) };
        let mut state = shared.state();
        if state.closed {
            return Err(WriteError::closed());
        }
        // What was sent after a CONNECT that is refused was meant for the tunnel, and a body that the client holds
        // back may or may not come (RFC 9110 §10.1.1): in both cases the next request could not be told apart.
        let body_may_come = self.awaits_continue && !state.decoder.is_ended();
        let persists = state.persists && self.method != Method::CONNECT && !body_may_come;
        let is_events = is_event_stream(&fields);
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
        state.is_events = is_events;
        drop(state);
        Ok(shared)
    }

    /// Answers CONNECT with 2xx, or a request to upgrade with 101, and hands over the stream.
    pub(crate) async fn tunnel(mut self, head: Head) -> Result<Tunnel, WriteError> {
        let opens = match self.upgrade {
            _ if self.method == Method::CONNECT => head.status.is_success(),
            Some(_) => head.status == StatusCode::SWITCHING_PROTOCOLS,
            None => false,
        };
        if !opens {
            return Err(WriteError::Status(head.status));
        }
        let Some(shared) = self.shared.take() else { return Err(WriteError::closed()) };
        let mut fields = head.fields;
        without_framing(&mut fields);
        if let Some(protocol) = self.upgrade {
            // RFC 9110 §7.8.
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            fields.entry(UPGRADE).or_insert(HeaderValue::from_static(protocol));
        }
        shared.state().out.push_back(encode_head(head.status, &fields));
        let guard = ResponseBody::new(shared.clone());
        flush(&shared).await?;
        guard.disarm();
        let (socket, early) = shared.state().hand_over();
        Ok(Tunnel::new(socket, early))
    }

    /// Resolves when the client is seen to have left.
    pub(crate) async fn departure(&self) -> Departure {
        match &self.shared {
            Some(shared) => shared.departure().await,
            None => Departure::Reset,
        }
    }

    /// Lets this be the last exchange of the connection.
    pub(crate) fn close_after(&mut self) {
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

/// Whether a response is one of server-sent events.
fn is_event_stream(fields: &HeaderMap) -> bool {
    let kind = fields.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"text/event-stream")
}

/// Writes what is queued; closes the connection when that fails.
pub(super) async fn flush(shared: &Arc<Shared>) -> Result<(), WriteError> {
    let result = shared.flush().await;
    if result.is_err() {
        shared.state().close(true);
    }
    Ok(result?)
}

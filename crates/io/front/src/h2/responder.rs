//! Answers one HTTP/2 request; see [`crate::connection::Responder`].

use super::response_body::ResponseBody;
use super::stream::Stream;
use super::{Order, Place, refusal};
use crate::answers::date;
use crate::connection::{Departure, Head, Tunnel, WriteError};
use crate::h1::{Framing, RequestHead, settle_body, without_body, without_framing};
use crate::settings::Settings;
use ::h2::server::SendResponse;
use ::h2::{Reason, RecvStream, SendStream};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the answer to one request goes. Dropped without an answer, it resets the stream.
pub(crate) struct Responder {
    /// Taken by whoever answers. Under a lock only because to be told of a reset takes `&mut`.
    answer: Option<Mutex<SendResponse<Bytes>>>,
    /// What the client sends in an extended CONNECT (RFC 8441).
    upgrade: Option<RecvStream>,
    method: Method,
    order: Order,
    place: Arc<Place>,
    settings: Arc<Settings>,
}

impl Responder {
    pub(super) fn new(
        answer: SendResponse<Bytes>,
        upgrade: Option<RecvStream>,
        head: &RequestHead,
        order: Order,
        place: Arc<Place>,
        settings: Arc<Settings>,
    ) -> Self {
        let method = head.method.clone();
        Responder { answer: Some(Mutex::new(answer)), upgrade, method, order, place, settings }
    }

    /// Says that nothing was done with the request: the client may repeat it elsewhere (RFC 9113 §8.7).
    pub(crate) fn refuse(mut self) {
        self.reset(Reason::REFUSED_STREAM);
    }

    /// Writes an informational head.
    pub(crate) fn informational(&mut self, head: Head) -> Result<(), WriteError> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let Head { status, mut fields } = head;
        without_framing(&mut fields);
        fields.remove(UPGRADE);
        let answer = answer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let sent = answer.send_informational(response(status, fields));
        sent.map_err(|error| refusal(error, |cx| answer.poll_reset(cx)).into())
    }

    /// Writes the final head and the first bytes of the body.
    pub(crate) async fn start(self, head: Head, first: Bytes) -> Result<ResponseBody, WriteError> {
        let mut body = self.begin_answer(head)?;
        body.send(first).await?;
        Ok(body)
    }

    /// Writes a whole response.
    pub(crate) async fn respond(self, head: Head, body: Bytes) -> Result<(), WriteError> {
        let Head { status, mut fields } = head;
        if !without_body(&self.method, status) {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let mut response = self.begin_answer(Head { status, fields })?;
        response.queue(body)?;
        response.finish(None).await
    }

    /// Writes the final head.
    fn begin_answer(mut self, head: Head) -> Result<ResponseBody, WriteError> {
        let Head { status, mut fields } = head;
        // To an extended CONNECT any success would say that its protocol has begun.
        if status.is_informational() || (self.upgrade.is_some() && status.is_success()) {
            return Err(WriteError::Status(status));
        }
        let framing = settle_body(&self.method, status, &mut fields).map_err(WriteError::Head)?;
        // RFC 9110 §6.6.1.
        fields.entry(DATE).or_insert_with(date);
        let stream = self.send_head(status, fields, framing == Framing::None)?;
        Ok(ResponseBody::new(stream, framing, self.place.clone(), self.settings.clone()))
    }

    /// Answers an extended CONNECT as 101 answers an upgrade, and hands the stream over.
    pub(crate) fn tunnel(mut self, head: Head) -> Result<Tunnel, WriteError> {
        let Head { status, mut fields } = head;
        if status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(WriteError::Status(status));
        }
        let Some(received) = self.upgrade.take() else { return Err(WriteError::Status(status)) };
        without_framing(&mut fields);
        // RFC 8441 §5: success is a 200, and the handshake of HTTP/1.1 is not gone through.
        fields.remove(UPGRADE);
        fields.remove(SEC_WEBSOCKET_ACCEPT);
        let sent = self.send_head(StatusCode::OK, fields, false)?;
        Ok(Tunnel::new(Box::new(Stream::new(sent, received, self.place.clone())), Bytes::new()))
    }

    fn send_head(
        &mut self,
        status: StatusCode,
        fields: HeaderMap,
        ended: bool,
    ) -> Result<SendStream<Bytes>, WriteError> {
        let Some(answer) = self.answer.take() else { return Err(WriteError::closed()) };
        let mut answer = answer.into_inner().unwrap_or_else(PoisonError::into_inner);
        let sent = answer.send_response(response(status, fields), ended);
        sent.map_err(|error| refusal(error, |cx| answer.poll_reset(cx)).into())
    }

    /// What the client says of the order of this response.
    pub(crate) fn order(&self) -> Order {
        self.order.clone()
    }

    /// Resolves when the client cancels the request, or the connection breaks.
    pub(crate) async fn departure(&self) -> Departure {
        if let Some(answer) = &self.answer {
            let reset = poll_fn(|cx| answer.lock().unwrap_or_else(PoisonError::into_inner).poll_reset(cx));
            // An error is the connection's.
            let _ = reset.await;
        }
        Departure::Reset
    }

    /// Lets the connection end when all that is under way is answered.
    pub(crate) fn close_after(&mut self) {
        self.place.course.leave();
    }

    fn reset(&mut self, reason: Reason) {
        if let Some(answer) = self.answer.take() {
            answer.into_inner().unwrap_or_else(PoisonError::into_inner).send_reset(reason);
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.reset(Reason::INTERNAL_ERROR);
    }
}

fn response(status: StatusCode, fields: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}

//! One client connection: requests in order, each with a body to read and a response to write, both at the same
//! time if need be. Framing is [`crate::h1`]'s; what to answer is the application's.
//!
//! [`Connection::next_request`] gives an [`Exchange`]; its parts own what they need and may move to other tasks. The
//! next request is read when the response is complete and the request body is finished or let go.

mod request_body;
mod responder;
mod response_body;
mod state;
mod tunnel;

pub use request_body::RequestBody;
pub use responder::{Head, Responder, WriteError};
pub use response_body::ResponseBody;
pub use state::{BodyError, Departure};
pub use tunnel::Tunnel;

use crate::h1::{BodyDecoder, HeadScanner, Refusal, RequestHead, Section, encode_head, request_persists};
use crate::settings::Settings;
use crate::socket::Socket;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use state::{Answer, Piece, State};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::ready;
use std::time::SystemTime;
use tokio::io::AsyncWrite;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout};

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

/// Why a connection ended other than in peace. It is closed by then; what there was to tell the client is told.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request may not be forwarded; the client has been given [`Refusal::status`].
    #[error("request refused: {0}")]
    Refused(Refusal),
    /// The head did not arrive in time; the client has been given 408.
    #[error("the request head took too long")]
    HeadTimedOut,
    /// The connection failed.
    #[error("client connection: {0}")]
    Connection(#[from] io::Error),
}

/// What the handles of one connection share.
pub(crate) struct Shared {
    state: Mutex<State>,
    settings: Arc<Settings>,
}

impl Shared {
    /// The state is valid between any two of its functions, so that a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the client is seen to have left. An end of input alone can be a half-close, and a full one shows
    /// itself at the first write: only when nothing was written for the grace does it count.
    async fn departure(&self) -> Departure {
        if poll_fn(|cx| self.state().poll_departure(cx)).await == Departure::Reset {
            return Departure::Reset;
        }
        loop {
            let last_sign = self.state().last_sign_of_half_closed();
            let due = last_sign.map_or_else(Instant::now, |at| at + self.settings.half_close_grace);
            if due <= Instant::now() {
                return Departure::EndOfInput;
            }
            sleep_until(due).await;
        }
    }

    /// Writes all that is queued; fails when the client takes nothing for the write timeout.
    async fn flush(&self) -> io::Result<()> {
        loop {
            let write = poll_fn(|cx| self.state().poll_write(cx));
            match timeout(self.settings.write_timeout, write).await {
                Ok(result) => result?,
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
            if self.state().out.is_empty() {
                return poll_fn(|cx| self.state().poll_flush(cx)).await;
            }
        }
    }
}

/// A client's connection.
pub struct Connection {
    shared: Arc<Shared>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Serves an accepted stream.
    pub fn new(socket: impl Socket, settings: Arc<Settings>) -> Self {
        let state = Mutex::new(State::new(Box::new(socket)));
        Connection { shared: Arc::new(Shared { state, settings }), _permit: None }
    }

    /// Holds a place among the connections served at once until this one is dropped.
    pub(crate) fn holding(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self._permit = permit;
        self
    }

    /// The next request, once the one before is answered; `None` when the connection has ended in peace or was
    /// handed over as a tunnel. Dropping the future while it waits loses nothing.
    ///
    /// # Errors
    /// The request may not be forwarded, came too slowly, or the connection failed. It is closed then.
    pub async fn next_request(&mut self) -> Result<Option<Exchange>, RequestError> {
        let result = self.wait_for_request().await;
        if !matches!(result, Ok(Some(_))) {
            self.shared.state().close(false);
        }
        result
    }

    async fn wait_for_request(&mut self) -> Result<Option<Exchange>, RequestError> {
        if !self.settle_previous().await? {
            return Ok(None);
        }
        let mut scanner = HeadScanner::new(Section::Request);
        match timeout(self.shared.settings.idle_timeout, self.first_byte()).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) | Err(_) => return Ok(None),
            Ok(Err(error)) => return Err(error.into()),
        }
        match timeout(self.shared.settings.head_timeout, self.read_head(&mut scanner)).await {
            Ok(Ok(Some(head))) => Ok(Some(self.begin(head))),
            Ok(Ok(None)) => Ok(None),
            Ok(Err(RequestError::Refused(refusal))) => {
                self.refuse(refusal.status(), &refusal.to_string()).await;
                Err(RequestError::Refused(refusal))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.refuse(StatusCode::REQUEST_TIMEOUT, "the request head took too long").await;
                Err(RequestError::HeadTimedOut)
            }
        }
    }

    /// Brings the previous exchange to its end; `false` when no further request can follow.
    async fn settle_previous(&self) -> Result<bool, RequestError> {
        poll_fn(|cx| self.shared.state().poll_settled(cx)).await?;
        let (closed, persists) = {
            let state = self.shared.state();
            (state.closed, state.persists)
        };
        if closed || (persists && self.drain_body().await) {
            return Ok(!closed);
        }
        self.linger().await;
        Ok(false)
    }

    /// Takes what is left of a request body that nobody read (RFC 9112 §9.3); `false` when that is too much.
    async fn drain_body(&self) -> bool {
        if self.shared.state().decoder.is_ended() {
            return true;
        }
        let mut left = self.shared.settings.drain.0;
        let drained = timeout(self.shared.settings.linger, async {
            loop {
                match poll_fn(|cx| self.shared.state().poll_body(cx)).await {
                    Ok(Piece::End(_)) => return true,
                    Ok(Piece::Data(data)) if data.len() as u64 <= left => left -= data.len() as u64,
                    Ok(Piece::Data(_)) | Err(_) => return false,
                }
            }
        });
        drained.await.unwrap_or(false)
    }

    /// Closes in stages (RFC 9112 §9.6): the sending half first, then, when the client has read the response and
    /// closed as well or time is up, the rest. Closing at once would answer bytes still on their way with a
    /// reset, and that can destroy the response.
    async fn linger(&self) {
        let discard = async {
            poll_fn(|cx| Pin::new(&mut self.shared.state().socket).poll_shutdown(cx)).await?;
            loop {
                let count = poll_fn(|cx| {
                    let mut state = self.shared.state();
                    state.buffer.clear();
                    state.poll_fill(cx)
                });
                if count.await? == 0 {
                    return io::Result::Ok(());
                }
            }
        };
        // Whatever went wrong: the connection is closed next.
        let _ = timeout(self.shared.settings.linger, discard).await;
    }

    /// Waits for a byte of the next request; `false` when the connection ended before one.
    async fn first_byte(&self) -> io::Result<bool> {
        poll_fn(|cx| {
            let mut state = self.shared.state();
            while state.buffer.is_empty() {
                if ready!(state.poll_fill(cx))? == 0 {
                    return Ok(false).into();
                }
            }
            Ok(true).into()
        })
        .await
    }

    /// Reads a whole head; `None` when nothing but empty lines came before the end.
    async fn read_head(&self, scanner: &mut HeadScanner) -> Result<Option<RequestHead>, RequestError> {
        let limits = &self.shared.settings.head;
        poll_fn(|cx| {
            let mut state = self.shared.state();
            loop {
                if let Some(range) = scanner.scan(&state.buffer, limits).map_err(RequestError::Refused)? {
                    let mut head = state.buffer.split_to(range.end);
                    let head = head.split_off(range.start);
                    return RequestHead::parse(&head, limits).map(Some).map_err(RequestError::Refused).into();
                }
                if ready!(state.poll_fill(cx))? == 0 {
                    let incomplete = RequestError::Refused(Refusal::HeadIncomplete);
                    return if scanner.begun() { Err(incomplete) } else { Ok(None) }.into();
                }
            }
        })
        .await
    }

    /// Opens the exchange of a head that was read.
    fn begin(&self, head: RequestHead) -> Exchange {
        let mut state = self.shared.state();
        state.decoder = BodyDecoder::new(head.framing, self.shared.settings.head);
        state.persists = request_persists(head.version, &head.fields);
        state.answer = Answer::Awaiting;
        state.body_held = true;
        drop(state);
        let responder = Responder::new(self.shared.clone(), &head);
        let body = RequestBody::new(self.shared.clone(), head.framing);
        Exchange { head, body, responder }
    }

    /// Answers what is not a request and closes.
    async fn refuse(&self, status: StatusCode, reason: &str) {
        let text = format!("{}: {reason}\n", self.shared.settings.name);
        let mut fields = HeaderMap::new();
        fields.insert(DATE, date());
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        fields.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
        // RFC 9209 §2.3.15: the request could not be understood.
        let cause = format!("{}; error=http_request_error; details=\"{reason}\"", self.shared.settings.name);
        if let Ok(cause) = HeaderValue::try_from(cause) {
            fields.insert(HeaderName::from_static("proxy-status"), cause);
        }
        self.shared.state().out.extend([encode_head(status, &fields), Bytes::from(text)]);
        if self.shared.flush().await.is_ok() {
            self.linger().await;
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

/// The time of day as RFC 9110 §5.6.7 writes it.
fn date() -> HeaderValue {
    HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::now()))
        .unwrap_or_else(|_| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_holds_no_buffers_and_little_state() {
        let (mut client, far) = duplex(1024);
        let mut connection = Connection::new(far, Arc::default());
        client.write_all(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc").await.unwrap();
        let exchange = connection.next_request().await.unwrap().unwrap();
        let head = Head { status: StatusCode::OK, fields: HeaderMap::new() };
        exchange.responder.respond(head, "x".into()).await.unwrap();
        drop(exchange.body);
        client.read_buf(&mut Vec::with_capacity(1024)).await.unwrap();
        let shared = connection.shared.clone();
        let waiting = connection.next_request();
        let held = size_of_val(&waiting) + size_of::<Shared>() + size_of::<State>();
        assert!(held < 4096, "{held} bytes of state");
        let idle = timeout(shared.settings.idle_timeout / 2, waiting).await;
        assert!(idle.is_err(), "still open");
        assert_eq!(shared.state().buffer.capacity(), 0);
        assert!(shared.state().out.capacity() <= 16);
    }
}

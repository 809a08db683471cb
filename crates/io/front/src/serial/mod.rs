//! HTTP/1 connections: requests in turn, each read when the one before is done with. Framing is [`crate::h1`]'s; how
//! it looks to the application is said in [`crate::connection`].

mod request_body;
mod responder;
mod response_body;
mod state;

pub(crate) use request_body::RequestBody;
pub(crate) use responder::Responder;
pub(crate) use response_body::ResponseBody;

use crate::answers;
use crate::connection::{Departure, Exchange, RequestError};
use crate::h1::{
    BodyDecoder, HeadScanner, Refusal, RequestHead, Section, begins_request, encode_head, request_persists,
};
use crate::scope::Scope;
use crate::settings::Settings;
use crate::socket::Socket;
use http::header::CONNECTION;
use http::{HeaderValue, StatusCode};
use state::{Answer, Piece, State};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::ready;
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, sleep_until, timeout};

/// How long at most a client that sends nothing more is believed to listen to an event stream in which nothing happens: pages do,
/// and they close the whole connection when they are left.
const EVENTS_GRACE: Duration = Duration::from_secs(5);

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
            let (last_sign, is_events) = {
                let state = self.state();
                (state.last_sign_of_half_closed(), state.is_events)
            };
            let grace = self.settings.half_close_grace;
            let grace = if is_events { grace.min(EVENTS_GRACE) } else { grace };
            let due = last_sign.map_or_else(Instant::now, |at| at + grace);
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
                // TLS may still hold some of it.
                let flush = poll_fn(|cx| self.state().poll_flush(cx));
                return timeout(self.settings.write_timeout, flush).await.map_err(io::Error::from)?;
            }
        }
    }
}

/// A client's connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    /// The origin that all requests must be for, inside a CONNECT.
    scope: Option<Scope>,
}

impl Connection {
    /// Serves a stream.
    pub(crate) fn new(socket: Box<dyn Socket>, scope: Option<Scope>, settings: Arc<Settings>) -> Self {
        let state = Mutex::new(State::new(socket));
        Connection { shared: Arc::new(Shared { state, settings }), scope }
    }

    /// The next request, once the one before is answered.
    pub(crate) async fn next_request(&mut self) -> Result<Option<Exchange>, RequestError> {
        let result = self.wait_for_request().await;
        if !matches!(result, Ok(Some(_))) {
            self.shared.state().close(false);
        }
        result
    }

    /// Reads until it is clear whether the client speaks HTTP; `None` when it has ended before. What was read stays to be read.
    pub(crate) async fn speaks_http(&mut self) -> Option<bool> {
        poll_fn(|cx| {
            let mut state = self.shared.state();
            loop {
                if let Some(is_http) = begins_request(&state.buffer) {
                    return Some(is_http).into();
                }
                if !matches!(ready!(state.poll_fill(cx)), Ok(1..)) {
                    return None.into();
                }
            }
        })
        .await
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
        match timeout(self.shared.settings.head_timeout(), self.read_head(&mut scanner)).await {
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
        let drained = timeout(self.shared.settings.linger(), async {
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
        let _ = timeout(self.shared.settings.linger(), discard).await;
    }

    /// Waits for a byte of the next request; `false` when the connection ended before one.
    async fn first_byte(&self) -> io::Result<bool> {
        poll_fn(|cx| {
            let mut state = self.shared.state();
            while state.buffer.is_empty() {
                match ready!(state.poll_fill(cx)) {
                    Ok(0) => return Ok(false).into(),
                    Ok(_) => {}
                    // TLS that ended without saying so. Between two requests nothing can be cut short by it.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false).into(),
                    Err(error) => return Err(error).into(),
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
                    return self.judge(&head).map(Some).map_err(RequestError::Refused).into();
                }
                if ready!(state.poll_fill(cx))? == 0 {
                    let incomplete = RequestError::Refused(Refusal::HeadIncomplete);
                    return if scanner.begun() { Err(incomplete) } else { Ok(None) }.into();
                }
            }
        })
        .await
    }

    /// Reads a complete head, and makes sure that it is for whom the connection is for.
    fn judge(&self, head: &[u8]) -> Result<RequestHead, Refusal> {
        let mut head = RequestHead::parse(head, &self.shared.settings.head)?;
        if let Some(scope) = &self.scope {
            scope.settle(&mut head)?;
        }
        Ok(head)
    }

    /// Opens the exchange of a head that was read.
    fn begin(&self, head: RequestHead) -> Exchange {
        let mut state = self.shared.state();
        state.decoder = BodyDecoder::new(head.framing, self.shared.settings.head);
        state.persists = request_persists(head.version, &head.fields);
        state.answer = Answer::Awaiting;
        state.is_events = false;
        state.body_held = true;
        drop(state);
        let responder = Responder::new(self.shared.clone(), &head);
        let body = RequestBody::new(self.shared.clone(), head.framing);
        Exchange { head, body: body.into(), responder: responder.into() }
    }

    /// Answers what is not a request and closes.
    async fn refuse(&self, status: StatusCode, reason: &str) {
        let (mut fields, text) = answers::refusal(&self.shared.settings.name, reason);
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
        self.shared.state().out.extend([encode_head(status, &fields), text]);
        if self.shared.flush().await.is_ok() {
            self.linger().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Head;
    use http::HeaderMap;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn a_body_that_trickles_keeps_nothing_of_the_buffer_that_it_came_in() {
        let (mut client, far) = duplex(1024);
        let mut connection = Connection::new(Box::new(far), None, Arc::default());
        client.write_all(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n").await.unwrap();
        let mut exchange = connection.next_request().await.unwrap().unwrap();
        for _ in 0..10 {
            client.write_all(b"abc").await.unwrap();
            let piece = exchange.body.data().await.unwrap().unwrap();
            assert_eq!(piece, "abc");
            assert!(piece.is_unique(), "it is a view of the buffer");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_holds_no_buffers_and_little_state() {
        let (mut client, far) = duplex(1024);
        let mut connection = Connection::new(Box::new(far), None, Arc::default());
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

//! The task that moves one HTTP/2 connection: takes requests in, keeps every stream going, and ends it.
//!
//! ```text
//! preface ─► serving ─► leaving (GOAWAY sent, streams go on) ─► closed
//!               └──────────► doomed (GOAWAY sent, streams end) ────┘
//! ```
//!
//! It leaves when it was idle for too long, when the application has let go of the connection, or when an exchange
//! asked for it. It is doomed when frames have come that the sieve can't read.

use super::request::judge;
use super::sieve::Sieve;
use super::sieved::Sieved;
use super::{Arrival, Course, Parting, RequestBody, Responder, failure};
use crate::answers;
use crate::connection::RequestError;
use crate::h1::Refusal;
use crate::scope::Scope;
use crate::settings::Settings;
use crate::socket::Socket;
use crate::windows::{Given, window};
use ::h2::server::{self, SendResponse};
use ::h2::{Reason, RecvStream};
use bytes::Bytes;
use farhop_tuning::Room;
use http::{Method, Request, Response};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};
use std::{io, mem};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep_until, timeout};

/// What of a response may lie in memory between the application and the socket, in bytes per stream: clients that take nothing leave
/// as much lying for each. What a quick one needs ahead lies in the kernel.
const SEND_BUFFER: usize = 32 * 1024;

type H2 = server::Connection<Sieved, Bytes>;
type Accepted = (Request<RecvStream>, SendResponse<Bytes>);

/// Serves `socket` until it has ended.
pub(super) async fn drive(
    socket: Box<dyn Socket>,
    scope: Scope,
    settings: Arc<Settings>,
    arrivals: UnboundedSender<Result<Arrival, RequestError>>,
) {
    let course = Arc::new(Course::new(settings.streams as usize));
    let sieve = Sieve::new(head(&settings) as usize, settings.streams as usize);
    let given = Given::new(settings.windows.now());
    let sieved = Sieved::new(socket, sieve, course.clone(), settings.clone());
    let handshake = builder(&settings, given.room()).handshake(sieved);
    let result = match timeout(settings.head_timeout(), handshake).await {
        Ok(Ok(h2)) => {
            let driver = Driver { h2, given, scope, settings, course, arrivals: arrivals.clone() };
            driver.run().await.map_err(RequestError::Connection)
        }
        Ok(Err(error)) => Err(RequestError::Connection(failure(error))),
        Err(_) => Err(RequestError::HeadTimedOut),
    };
    match result {
        Ok(()) => {}
        // What was under way is told by its own handles; the rest is an end like any other.
        Err(RequestError::Connection(error)) if is_gone(error.kind()) => {}
        // Whoever let go of the connection does not want to know.
        Err(error) => drop(arrivals.send(Err(error))),
    }
}

/// What the application is told of a connection that was doomed.
fn unreadable(reason: Reason) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("HTTP/2 frames: {}", reason.description()))
}

/// Whether the client just closed its connection.
fn is_gone(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionReset | NotConnected | UnexpectedEof)
}

fn builder(settings: &Settings, room: Room) -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(window(room.stream))
        .initial_connection_window_size(window(room.connection))
        .max_concurrent_streams(settings.streams)
        // A browser that is told to stop cancels all that it has asked for, at once.
        .max_pending_accept_reset_streams(settings.streams as usize)
        .max_header_list_size(head(settings))
        .max_send_buffer_size(SEND_BUFFER)
        .enable_connect_protocol();
    builder
}

/// The largest field section, in bytes.
fn head(settings: &Settings) -> u32 {
    u32::try_from(settings.head.head.0).unwrap_or(u32::MAX)
}

struct Driver {
    h2: H2,
    given: Given,
    scope: Scope,
    settings: Arc<Settings>,
    course: Arc<Course>,
    arrivals: UnboundedSender<Result<Arrival, RequestError>>,
}

impl Driver {
    async fn run(mut self) -> io::Result<()> {
        let (mut leaving, mut doomed) = (false, false);
        let mut quiet_since = None;
        loop {
            let under_way = self.course.under_way.load(SeqCst);
            // More than one connection may have are not taken in, so that the h2 crate's bound on requests that are
            // cancelled as soon as they are made (CVE-2023-44487) counts them.
            let room = under_way < self.settings.streams as usize;
            quiet_since = (under_way == 0).then(|| quiet_since.unwrap_or_else(Instant::now));
            let patience = if leaving { self.settings.linger() } else { self.settings.idle_timeout };
            let due = quiet_since.map(|since: Instant| since + patience);
            let leave = tokio::select! {
                // That the connection ends is said before what is said of its streams: whoever asks again because one was refused
                // takes another connection. Nor does whoever always has more to say keep it open.
                biased;
                () = self.course.changed.notified() => {
                    if let Some(reason) = self.course.doomed.get()
                        && !mem::replace(&mut doomed, true)
                    {
                        self.h2.abrupt_shutdown(*reason);
                    }
                    self.course.leaving.load(SeqCst)
                }
                () = self.arrivals.closed(), if !leaving => true,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if leaving {
                        return Ok(());
                    }
                    true
                }
                accepted = poll_fn(|cx| {
                    self.given.grow(self.settings.windows.now(), &mut self.h2);
                    let parting = mem::take(&mut *self.course.parting());
                    let polled = poll(&mut self.h2, room, cx);
                    // What was sent on them was with the crate before it was polled, within the client's windows.
                    if self.course.blocked.load(SeqCst) {
                        self.course.parting().extend(parting);
                    } else {
                        parting.into_iter().for_each(Parting::end);
                    }
                    polled
                }) => match accepted {
                    Some(accepted) => { self.take(accepted.map_err(failure)?); false }
                    None => return self.course.doomed.get().map_or(Ok(()), |reason| Err(unreadable(*reason))),
                },
            };
            if leave && !leaving {
                leaving = true;
                quiet_since = None;
                self.h2.graceful_shutdown();
            }
        }
    }

    /// Gives a request to the application, or refuses it.
    fn take(&self, (request, mut respond): Accepted) {
        let (parts, body) = request.into_parts();
        let method = parts.method.clone();
        match judge(parts, body.is_end_stream(), &self.scope, &self.settings.head) {
            Ok(head) => {
                let (place, order) = self.course.enter(respond.stream_id().as_u32());
                let tunnelled = head.upgrade.is_some();
                let (body, upgrade) = if tunnelled { (None, Some(body)) } else { (Some(body), None) };
                let body = RequestBody::new(body, head.framing, place.clone(), self.settings.clone());
                let responder = Responder::new(respond, upgrade, &head, order, place, self.settings.clone());
                let arrival = Arrival { head, body, responder };
                if let Err(unheard) = self.arrivals.send(Ok(arrival))
                    && let Ok(arrival) = unheard.0
                {
                    arrival.responder.refuse();
                }
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "request refused");
                self.refuse(&mut respond, &method, refusal);
            }
        }
    }

    /// Answers what may not be forwarded. RFC 9113 §8.1.1 allows an answer before the stream is closed.
    fn refuse(&self, respond: &mut SendResponse<Bytes>, method: &Method, refusal: Refusal) {
        let (fields, text) = answers::refusal(&self.settings.name, &refusal.to_string());
        let mut response = Response::new(());
        *response.status_mut() = refusal.status();
        *response.headers_mut() = fields;
        let without_body = method == Method::HEAD;
        let sent = respond
            .send_response(response, without_body)
            .and_then(|mut stream| if without_body { Ok(()) } else { stream.send_data(text, true) });
        if sent.is_err() {
            respond.send_reset(Reason::PROTOCOL_ERROR);
        }
    }
}

/// The next request if there is `room` for one, else only progress; `None` when the connection has ended.
fn poll(h2: &mut H2, room: bool, cx: &mut Context<'_>) -> Poll<Option<Result<Accepted, ::h2::Error>>> {
    if room {
        // `accept` keeps nothing between polls, so that a fresh future each time loses nothing.
        pin!(h2.accept()).poll(cx)
    } else {
        h2.poll_closed(cx).map(|closed| closed.err().map(Err))
    }
}

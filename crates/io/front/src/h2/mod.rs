//! HTTP/2 connections: requests beside each other, over the h2 crate, which does frames, windows, field compression
//! and their bounds (rapid resets). What a request may look like is [`request`]'s; how it looks to the application is
//! said in [`crate::connection`]. What comes goes through a [`sieve`] first, so that a malformed request is its own
//! stream's trouble.
//!
//! A task of its own drives each connection ([`driver`]), so that streams move whatever the application waits for.

mod driver;
mod orders;
mod request;
mod request_body;
mod responder;
mod response_body;
mod sieve;
mod sieved;
mod stream;

pub(crate) use orders::Order;
pub(crate) use request_body::RequestBody;
pub(crate) use responder::Responder;
pub(crate) use response_body::ResponseBody;
pub use sieve::fuzz_frames;

use crate::connection::{Exchange, RequestError};
use crate::h1::RequestHead;
use crate::scope::Scope;
use crate::settings::Settings;
use crate::socket::Socket;
use ::h2::{Reason, SendStream};
use bytes::Bytes;
use orders::Orders;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::{Notify, mpsc};

/// A request that the driver took in.
struct Arrival {
    head: RequestHead,
    body: RequestBody,
    responder: Responder,
}

/// A client's connection.
pub(crate) struct Connection {
    /// No bound of its own: no more are under way than [`Settings::streams`].
    arrivals: mpsc::UnboundedReceiver<Result<Arrival, RequestError>>,
}

impl Connection {
    /// Serves a stream, from the client's preface on.
    pub(crate) fn new(socket: Box<dyn Socket>, scope: Scope, settings: Arc<Settings>) -> Self {
        let (sender, arrivals) = mpsc::unbounded_channel();
        tokio::spawn(driver::drive(socket, scope, settings, sender));
        Connection { arrivals }
    }

    /// The next request, while earlier ones may be under way.
    pub(crate) async fn next_request(&mut self) -> Result<Option<Exchange>, RequestError> {
        let Some(arrival) = self.arrivals.recv().await else { return Ok(None) };
        let Arrival { head, body, responder } = arrival?;
        Ok(Some(Exchange { head, body: body.into(), responder: responder.into() }))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.arrivals.close();
        while let Ok(arrival) = self.arrivals.try_recv() {
            if let Ok(arrival) = arrival {
                arrival.responder.refuse();
            }
        }
    }
}

/// What the handles of one connection share with its driver.
struct Course {
    under_way: AtomicUsize,
    leaving: AtomicBool,
    /// Why the connection can't go on.
    doomed: OnceLock<Reason>,
    /// Streams that end once what was sent on them is with the socket.
    parting: Mutex<Vec<Parting>>,
    /// Told when any of them changes.
    changed: Notify,
    /// Whether the socket has not taken all that was written.
    blocked: AtomicBool,
    orders: Orders,
}

impl Course {
    /// Of a connection with so many requests under way at most.
    fn new(most: usize) -> Course {
        Course {
            under_way: AtomicUsize::new(0),
            leaving: AtomicBool::new(false),
            doomed: OnceLock::new(),
            parting: Mutex::default(),
            changed: Notify::new(),
            blocked: AtomicBool::new(false),
            orders: Orders::new(most),
        }
    }

    /// Ends a stream, after what was sent on it: at once the crate would drop what it has not handed to the socket.
    fn part(&self, parting: Parting) {
        self.parting().push(parting);
        self.changed.notify_one();
    }

    fn parting(&self) -> MutexGuard<'_, Vec<Parting>> {
        self.parting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the exchange of a stream until the place is dropped.
    fn enter(self: &Arc<Self>, stream: u32) -> (Arc<Place>, Order) {
        self.under_way.fetch_add(1, SeqCst);
        (
            Arc::new(Place { course: self.clone(), stream, unread: AtomicBool::new(false) }),
            self.orders.give(stream),
        )
    }

    /// Has the driver end this connection at once, with this for the client.
    fn doom(&self, reason: Reason) {
        if self.doomed.set(reason).is_ok() {
            self.changed.notify_one();
        }
    }

    /// Asks the driver to let this connection end when all is answered.
    fn leave(&self) {
        self.leaving.store(true, SeqCst);
        self.changed.notify_one();
    }
}

/// One exchange under way; its handles hold it together.
struct Place {
    course: Arc<Course>,
    stream: u32,
    /// Whether some of the request's body may be still to come.
    unread: AtomicBool,
}

impl Place {
    fn set_unread(&self, unread: bool) {
        self.unread.store(unread, SeqCst);
    }

    fn is_unread(&self) -> bool {
        self.unread.load(SeqCst)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.course.orders.forget(self.stream);
        self.course.under_way.fetch_sub(1, SeqCst);
        self.course.changed.notify_one();
    }
}

/// A stream on which nothing more is sent.
struct Parting {
    stream: SendStream<Bytes>,
    /// Why it is reset; none where its response is whole. A client that still sends its body is then told to stop, without an error
    /// (RFC 9113 §8.1).
    why: Option<Reason>,
}

impl Parting {
    fn end(mut self) {
        if let Some(reason) = self.why {
            self.stream.send_reset(reason);
        }
    }
}

/// Why nothing more can be written to a stream. To who was not told yet that the client has reset it, or that the connection
/// is gone, the crate says no more than that it is inactive.
fn refusal(
    error: ::h2::Error,
    poll_reset: impl FnOnce(&mut Context<'_>) -> Poll<Result<Reason, ::h2::Error>>,
) -> io::Error {
    match poll_reset(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(reason)) => {
            let text = format!("the client gave the request up ({reason:?})");
            io::Error::new(io::ErrorKind::ConnectionReset, text)
        }
        Poll::Ready(Err(cause)) if cause.is_io() || cause.is_go_away() => failure(cause),
        _ => failure(error),
    }
}

/// What went wrong, as the application knows it from other connections.
fn failure(error: ::h2::Error) -> io::Error {
    if error.is_remote() {
        return io::Error::new(io::ErrorKind::ConnectionReset, error);
    }
    if error.is_library() {
        return io::Error::new(io::ErrorKind::InvalidData, error);
    }
    let text = error.to_string();
    error.into_io().unwrap_or_else(|| io::Error::new(io::ErrorKind::NotConnected, text))
}

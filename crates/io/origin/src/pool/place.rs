//! The connections of one user to one destination: HTTP/1 ones lent to one exchange at a time, HTTP/2 ones shared, and
//! who waits for either.
//!
//! While it is not known which of the two an origin speaks, one connection is opened and everybody waits for it: six
//! handshakes at once would mostly be five too many.

use super::lock;
use crate::error::Error;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::request::Scheme;
use crate::settings::Settings;
use crate::tls::Protocol;
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, timeout};

/// See the module.
pub(crate) struct Place {
    host: String,
    settings: Arc<Settings>,
    state: Mutex<State>,
    /// A connection or room for one has become free, or an opening has come to its end.
    changed: Notify,
}

#[derive(Default)]
struct State {
    idle: Vec<Idle>,
    shared: Vec<Shared>,
    /// HTTP/1 connections lent, and connections being opened.
    busy: usize,
    /// An opening that others wait for is under way.
    awaited: bool,
    /// Counts such openings.
    opening: u64,
    /// The last one that failed, and why.
    failed: Option<(u64, Error)>,
    /// What the origin spoke last; `None` while that is not known.
    speaks: Option<Protocol>,
    /// The origin has said that it must be HTTP/1.
    only_http1: bool,
}

/// An HTTP/1 connection that nobody uses.
struct Idle {
    connection: Http1,
    unused: Unused,
}

/// An HTTP/2 connection.
struct Shared {
    connection: Http2,
    /// Counts connections; exchanges find theirs by it.
    number: u64,
    exchanges: usize,
    unused: Unused,
}

/// Since when a connection is not used, and whether it has yet to be used at all.
struct Unused {
    since: Instant,
    prepared: Option<OwnedSemaphorePermit>,
}

impl Unused {
    fn now(prepared: Option<OwnedSemaphorePermit>) -> Unused {
        Unused { since: Instant::now(), prepared }
    }

    fn is_for_too_long(&self, settings: &Settings) -> bool {
        let patience =
            if self.prepared.is_some() { settings.prepared_timeout } else { settings.idle_timeout };
        self.since.elapsed() >= patience
    }
}

/// What a request is sent on.
pub(crate) enum Connection {
    /// An HTTP/1 connection.
    Http1(Lent),
    /// A place on an HTTP/2 connection.
    Http2(Share),
}

/// What a request goes on with.
pub(crate) enum Next {
    /// A connection that was there before.
    Kept(Connection),
    /// The right to open one.
    Open(Opening),
}

/// A connection just opened.
pub(crate) enum Opened {
    Http1(Http1),
    Http2(Http2),
}

enum Wait {
    /// Until there is room, or until the opening of this number has come to its end.
    For(Option<u64>),
    /// The opening waited for has failed.
    InVain(Error),
}

impl Place {
    pub(super) fn new(scheme: Scheme, host: &str, settings: Arc<Settings>) -> Place {
        let speaks = (scheme == Scheme::Http).then_some(Protocol::Http1);
        let state = Mutex::new(State { speaks, ..State::default() });
        Place { host: host.into(), settings, state, changed: Notify::new() }
    }

    /// Waits for a connection, or for the right to open one. With `fresh` none that was used before: they may all have
    /// been closed.
    ///
    /// # Errors
    /// There was no room for too long, or the connection waited for could not be opened.
    pub(crate) async fn next(self: &Arc<Self>, fresh: bool) -> Result<Next, Error> {
        let waiting = async {
            let mut waited = None;
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                // From here on no change is missed.
                changed.as_mut().enable();
                match self.try_next(fresh, waited) {
                    Ok(next) => return Ok(next),
                    Err(Wait::InVain(error)) => return Err(error),
                    Err(Wait::For(opening)) => waited = opening,
                }
                changed.await;
            }
        };
        let busy = |_| Err(Error::Busy { host: self.host.clone() });
        timeout(self.settings.queue_timeout, waiting).await.unwrap_or_else(busy)
    }

    fn try_next(self: &Arc<Self>, fresh: bool, waited: Option<u64>) -> Result<Next, Wait> {
        let mut state = lock(&self.state);
        if let Some((opening, error)) = &state.failed
            && waited == Some(*opening)
        {
            return Err(Wait::InVain(error.clone()));
        }
        state.drop_unusable(&self.settings);
        let most = self.exchanges_per_connection();
        if let Some(shared) = state.shared.iter_mut().find(|shared| shared.has_room(most)) {
            shared.exchanges += 1;
            shared.unused.prepared = None;
            let (connection, number) = (shared.connection.clone(), shared.number);
            let share = Share { place: self.clone(), connection, number };
            return Ok(Next::Kept(Connection::Http2(share)));
        }
        if !fresh && let Some(idle) = state.idle.pop() {
            state.busy += 1;
            let lent = Lent { place: Some(self.clone()), connection: Some(idle.connection) };
            return Ok(Next::Kept(Connection::Http1(lent)));
        }
        if state.awaited {
            return Err(Wait::For(Some(state.opening)));
        }
        if state.busy + state.shared.len() >= self.settings.connections.max(1) {
            return Err(Wait::For(None));
        }
        let awaited = state.speaks != Some(Protocol::Http1);
        Ok(Next::Open(self.opening(&mut state, awaited)))
    }

    /// The right to open a connection ahead of requests; `None` if one is there or on its way.
    pub(crate) fn prepare(self: &Arc<Self>) -> Option<Opening> {
        let mut state = lock(&self.state);
        state.drop_unusable(&self.settings);
        let nothing = state.shared.is_empty() && state.idle.is_empty() && state.busy == 0;
        nothing.then(|| self.opening(&mut state, true))
    }

    fn opening(self: &Arc<Self>, state: &mut State, awaited: bool) -> Opening {
        state.busy += 1;
        state.opening += 1;
        state.awaited |= awaited;
        let http1 = state.only_http1;
        Opening { place: self.clone(), number: state.opening, awaited, http1, over: false }
    }

    /// HTTP/2 exchanges that can share a connection with none of them holding another back.
    fn exchanges_per_connection(&self) -> usize {
        let windows = self.settings.connection_window.0 / self.settings.stream_window.0.max(1);
        usize::try_from(windows).unwrap_or(usize::MAX).max(1)
    }

    /// From now on only HTTP/1 is offered (RFC 9113 §7, HTTP_1_1_REQUIRED).
    pub(crate) fn must_be_http1(&self) {
        let mut state = lock(&self.state);
        state.only_http1 = true;
        state.speaks = Some(Protocol::Http1);
        state.shared.clear();
    }

    /// Closes what is unused for too long; whether anything is left.
    pub(super) fn sweep(&self) -> bool {
        let mut state = lock(&self.state);
        state.drop_unusable(&self.settings);
        !state.idle.is_empty() || !state.shared.is_empty()
    }
}

impl State {
    fn drop_unusable(&mut self, settings: &Settings) {
        self.idle.retain(|idle| idle.connection.sender.is_ready() && !idle.unused.is_for_too_long(settings));
        self.shared.retain(|shared| {
            let unused = shared.exchanges == 0 && shared.unused.is_for_too_long(settings);
            shared.connection.is_open() && !unused
        });
    }
}

impl Shared {
    fn has_room(&self, most: usize) -> bool {
        self.exchanges < most.min(self.connection.exchanges()).max(1)
    }
}

/// The right to open one connection, and the duty to say what became of it; dropped without, it was given up.
pub(crate) struct Opening {
    place: Arc<Place>,
    number: u64,
    awaited: bool,
    http1: bool,
    over: bool,
}

impl Opening {
    /// What to offer to the origin, the best first.
    pub(crate) fn offers(&self) -> &'static [Protocol] {
        if self.http1 { &[Protocol::Http1] } else { &[Protocol::Http2, Protocol::Http1] }
    }

    /// It is open and used at once.
    pub(crate) fn used(mut self, opened: Opened) -> Connection {
        match opened {
            Opened::Http1(connection) => {
                self.end(|state| state.speaks = Some(Protocol::Http1));
                Connection::Http1(Lent { place: Some(self.place.clone()), connection: Some(connection) })
            }
            Opened::Http2(connection) => {
                let number = self.number;
                let shared = Shared {
                    connection: connection.clone(),
                    number,
                    exchanges: 1,
                    unused: Unused::now(None),
                };
                self.end(|state| state.share(shared));
                Connection::Http2(Share { place: self.place.clone(), connection, number })
            }
        }
    }

    /// It is open and waits for its first request.
    pub(crate) fn kept(mut self, opened: Opened, prepared: OwnedSemaphorePermit) {
        let (number, unused) = (self.number, Unused::now(Some(prepared)));
        self.end(|state| match opened {
            Opened::Http1(connection) => {
                state.busy -= 1;
                state.speaks = Some(Protocol::Http1);
                state.idle.push(Idle { connection, unused });
            }
            Opened::Http2(connection) => state.share(Shared { connection, number, exchanges: 0, unused }),
        });
    }

    /// It can't be opened; whoever waited for it learns why.
    pub(crate) fn failed(mut self, error: &Error) {
        let number = self.number;
        self.end(|state| {
            state.busy -= 1;
            state.failed = Some((number, error.clone()));
        });
    }

    fn end(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.place.state);
        if self.awaited {
            state.awaited = false;
        }
        change(&mut state);
        drop(state);
        self.over = true;
        self.place.changed.notify_waiters();
    }
}

impl State {
    fn share(&mut self, shared: Shared) {
        self.busy -= 1;
        self.speaks = Some(Protocol::Http2);
        self.shared.push(shared);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.over {
            self.end(|state| state.busy -= 1);
        }
    }
}

/// An HTTP/1 connection in use. Dropped, it closes.
pub(crate) struct Lent {
    /// Where it came from; `None` for one that is nobody else's.
    place: Option<Arc<Place>>,
    /// There until it is kept or dropped.
    connection: Option<Http1>,
}

impl Lent {
    /// A connection that no pool knows.
    pub(crate) fn alone(connection: Http1) -> Lent {
        Lent { place: None, connection: Some(connection) }
    }

    pub(crate) fn connection(&mut self) -> &mut Http1 {
        self.connection.as_mut().expect("it is taken out only by `keep`, which takes the whole")
    }

    /// Keeps it for the next exchange.
    pub(crate) fn keep(mut self) {
        if let (Some(place), Some(connection)) = (&self.place, self.connection.take()) {
            lock(&place.state).idle.push(Idle { connection, unused: Unused::now(None) });
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            lock(&place.state).busy -= 1;
            place.changed.notify_one();
        }
    }
}

/// A place for one exchange on an HTTP/2 connection.
pub(crate) struct Share {
    place: Arc<Place>,
    pub(crate) connection: Http2,
    number: u64,
}

impl Share {
    /// Something on the connection has stood still for too long. Perhaps all of it does: it gets no new requests.
    pub(crate) fn retire(&self) {
        lock(&self.place.state).shared.retain(|shared| shared.number != self.number);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = lock(&self.place.state);
        if let Some(shared) = state.shared.iter_mut().find(|shared| shared.number == self.number) {
            shared.exchanges -= 1;
            shared.unused.since = Instant::now();
        }
        drop(state);
        self.place.changed.notify_one();
    }
}

//! The connections of one user to one destination: HTTP/1 ones lent to one exchange at a time, HTTP/2 ones shared, and
//! who waits for either.
//!
//! While it is not known which of the two an origin speaks, one connection is opened and everybody waits for it: six
//! handshakes at once would mostly be five too many.

use super::held::{Lent, Opening, Share};
use super::kept::{Displaced, Kept, Ticket};
use super::lock;
use crate::error::Error;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::open::Offer;
use crate::request::Scheme;
use crate::settings::Settings;
use crate::tls::Protocol;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, timeout};

/// How many times as many event streams as connections at once a user may have open besides.
const ASIDE: usize = 4;

/// See the module.
pub(crate) struct Place {
    host: String,
    /// Connections at once.
    most: usize,
    settings: Arc<Settings>,
    kept: Arc<Kept>,
    pub(super) state: Mutex<State>,
    /// A connection or room for one has become free, or an opening has come to its end.
    pub(super) changed: Notify,
    /// Counts what has come on the connections, and those given back.
    moved: AtomicU64,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) idle: Vec<Idle>,
    pub(super) shared: Vec<Shared>,
    /// HTTP/1 connections lent, and connections being opened.
    pub(super) busy: usize,
    /// HTTP/1 connections lent that count no more: event streams.
    pub(super) aside: usize,
    /// An opening that others wait for is under way.
    pub(super) awaited: bool,
    /// Counts such openings.
    opening: u64,
    /// The last one that failed, and why.
    pub(super) failed: Option<(u64, Error)>,
    /// What the origin spoke last; `None` while that is not known.
    pub(super) speaks: Option<Protocol>,
    /// The origin has said that it must be HTTP/1.
    only_http1: bool,
    /// How many exchanges on a connection the origin was last known to let be under way.
    streams: Option<usize>,
}

/// An HTTP/1 connection that nobody uses.
pub(super) struct Idle {
    pub(super) connection: Http1,
    pub(super) unused: Unused,
}

/// An HTTP/2 connection.
pub(super) struct Shared {
    pub(super) connection: Http2,
    /// Counts connections; exchanges find theirs by it.
    pub(super) number: u64,
    pub(super) exchanges: usize,
    /// `None` while it is used.
    pub(super) unused: Option<Unused>,
}

/// Since when a connection is not used, and whether it has yet to be used at all.
pub(super) struct Unused {
    since: Instant,
    prepared: Option<OwnedSemaphorePermit>,
    ticket: Ticket,
}

impl Unused {
    fn is(&self, number: u64) -> bool {
        self.ticket.number == number
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

enum Wait {
    /// Until there is room, or until the opening of this number has come to its end.
    For(Option<u64>),
    /// The opening waited for has failed.
    InVain(Error),
}

impl Place {
    pub(super) fn new(
        scheme: Scheme,
        host: &str,
        single: bool,
        settings: Arc<Settings>,
        kept: Arc<Kept>,
    ) -> Place {
        let speaks = (single || scheme == Scheme::Http).then_some(Protocol::Http1);
        let state = Mutex::new(State { speaks, only_http1: single, ..State::default() });
        let most = if single { 1 } else { settings.connections.max(1) };
        Place {
            host: host.into(),
            most,
            settings,
            kept,
            state,
            changed: Notify::new(),
            moved: AtomicU64::new(0),
        }
    }

    /// Waits for a connection, or for the right to open one. With `fresh` no HTTP/1 connection that was used before: the origin
    /// may be closing it.
    ///
    /// While something comes on the connections ahead it is waited for as long as it takes: who asks waits for a download as at
    /// the origin itself, and can leave.
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
        tokio::pin!(waiting);
        loop {
            let moved = self.moved.load(Ordering::Relaxed);
            match timeout(self.settings.queue_timeout, &mut waiting).await {
                Ok(next) => return next,
                Err(_) if self.moved.load(Ordering::Relaxed) != moved => {}
                Err(_) => return Err(Error::Busy { host: self.host.clone() }),
            }
        }
    }

    /// Something has come on a connection, or one is given back.
    pub(super) fn moved(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether an HTTP/1 connection that is lent need not count any more. One that is somebody's login stays the only one.
    pub(super) fn sets_aside(&self, state: &mut State) -> bool {
        let may = self.most > 1 && state.aside < ASIDE * self.most;
        if may {
            state.aside += 1;
            state.busy -= 1;
        }
        may
    }

    fn try_next(self: &Arc<Self>, fresh: bool, waited: Option<u64>) -> Result<Next, Wait> {
        let mut state = lock(&self.state);
        if let Some((opening, error)) = &state.failed
            && waited == Some(*opening)
        {
            return Err(Wait::InVain(error.clone()));
        }
        state.drop_unusable(&self.settings);
        if let Some(shared) = state.shared.iter_mut().find(|shared| shared.has_room()) {
            shared.exchanges += 1;
            shared.unused = None;
            let (connection, number) = (shared.connection.clone(), shared.number);
            let share = Share::new(self.clone(), connection, number);
            return Ok(Next::Kept(Connection::Http2(share)));
        }
        if let Some(idle) = state.take_idle(fresh) {
            state.busy += 1;
            let lent = Lent::of(self.clone(), idle.connection);
            return Ok(Next::Kept(Connection::Http1(lent)));
        }
        if state.awaited {
            return Err(Wait::For(Some(state.opening)));
        }
        if state.busy + state.shared.len() >= self.most {
            return Err(Wait::For(None));
        }
        if state.busy + state.shared.len() + state.idle.len() >= self.most {
            // The one unused the longest makes room.
            drop(state.idle.remove(0));
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
        let both = Offer { protocols: &[Protocol::Http2, Protocol::Http1], streams: state.streams };
        let offer = if state.only_http1 { Offer::HTTP1 } else { both };
        Opening::new(self.clone(), state.opening, awaited, offer)
    }

    /// From now on only HTTP/1 is offered (RFC 9113 §7, HTTP_1_1_REQUIRED).
    pub(crate) fn must_be_http1(&self) {
        let mut state = lock(&self.state);
        state.only_http1 = true;
        state.speaks = Some(Protocol::Http1);
        state.shared.clear();
    }

    /// A connection is not used from now on, `prepared` if it has yet to be; the caller holds the state, and closes what is
    /// displaced when it does no more.
    pub(super) fn unused(self: &Arc<Self>, prepared: Option<OwnedSemaphorePermit>) -> (Unused, Displaced) {
        let (ticket, displaced) = self.kept.enter(self);
        (Unused { since: Instant::now(), prepared, ticket }, displaced)
    }

    /// Closes the connection of this ticket, if it is still unused.
    pub(super) fn close_unused(&self, number: u64) {
        let mut state = lock(&self.state);
        state.idle.retain(|idle| !idle.unused.is(number));
        state.shared.retain(|shared| !shared.unused.as_ref().is_some_and(|unused| unused.is(number)));
        drop(state);
        self.changed.notify_one();
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
        // What has just ended may have said it as well.
        self.streams = self.shared.iter().map(|shared| shared.connection.streams()).min().or(self.streams);
        self.shared.retain(|shared| {
            let unused = shared.unused.as_ref().is_some_and(|unused| unused.is_for_too_long(settings));
            shared.connection.is_open() && !unused
        });
    }

    /// The connection that was used last; with `fresh` one that was opened ahead and never used.
    fn take_idle(&mut self, fresh: bool) -> Option<Idle> {
        let at = self.idle.iter().rposition(|idle| !fresh || idle.unused.prepared.is_some())?;
        Some(self.idle.remove(at))
    }

    /// A connection that was being opened can be shared.
    pub(super) fn share(&mut self, shared: Shared) {
        self.busy -= 1;
        self.speaks = Some(Protocol::Http2);
        self.shared.push(shared);
    }
}

impl Shared {
    fn has_room(&self) -> bool {
        self.exchanges < self.connection.exchanges().max(1)
    }
}

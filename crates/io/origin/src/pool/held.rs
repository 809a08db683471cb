//! What an exchange holds of a [`Place`]: a connection, a share of one, or the right to open one. Dropping it gives it
//! back.

use super::kept::Displaced;
use super::lock;
use super::place::{Connection, Idle, Place, Shared, State};
use crate::error::Error;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::open::Offer;
use crate::tls::Protocol;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A connection just opened.
pub(crate) enum Opened {
    Http1(Http1),
    Http2(Http2),
}

/// The right to open one connection, and the duty to say what became of it; dropped without, it was given up.
pub(crate) struct Opening {
    place: Arc<Place>,
    number: u64,
    awaited: bool,
    offer: Offer,
    over: bool,
}

impl Opening {
    pub(super) fn new(place: Arc<Place>, number: u64, awaited: bool, offer: Offer) -> Opening {
        Opening { place, number, awaited, offer, over: false }
    }

    /// What to offer to the origin.
    pub(crate) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// It is open and used at once.
    pub(crate) fn used(mut self, opened: Opened) -> Connection {
        match opened {
            Opened::Http1(connection) => {
                self.end(|state| state.speaks = Some(Protocol::Http1));
                Connection::Http1(Lent::of(self.place.clone(), connection))
            }
            Opened::Http2(connection) => {
                let number = self.number;
                let shared = Shared { connection: connection.clone(), number, exchanges: 1, unused: None };
                self.end(|state| state.share(shared));
                Connection::Http2(Share::new(self.place.clone(), connection, number))
            }
        }
    }

    /// It is open and waits for its first request.
    pub(crate) fn kept(mut self, opened: Opened, prepared: OwnedSemaphorePermit) {
        let (number, place) = (self.number, self.place.clone());
        let displaced = self.end(|state| {
            let (unused, displaced) = place.unused(Some(prepared));
            match opened {
                Opened::Http1(connection) => {
                    state.busy -= 1;
                    state.speaks = Some(Protocol::Http1);
                    state.idle.push(Idle { connection, unused });
                }
                Opened::Http2(connection) => {
                    state.share(Shared { connection, number, exchanges: 0, unused: Some(unused) });
                }
            }
            displaced
        });
        displaced.close();
    }

    /// It can't be opened; whoever waited for it learns why.
    pub(crate) fn failed(mut self, error: &Error) {
        let number = self.number;
        self.end(|state| {
            state.busy -= 1;
            state.failed = Some((number, error.clone()));
        });
    }

    fn end<T>(&mut self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.place.state);
        if self.awaited {
            state.awaited = false;
        }
        let changed = change(&mut state);
        drop(state);
        self.over = true;
        self.place.changed.notify_waiters();
        changed
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
    /// It carries an event stream, and does not count among those of which an origin has so many.
    aside: bool,
}

impl Lent {
    pub(super) fn of(place: Arc<Place>, connection: Http1) -> Lent {
        Lent { place: Some(place), connection: Some(connection), aside: false }
    }

    /// A connection that no pool knows.
    pub(crate) fn alone(connection: Http1) -> Lent {
        Lent { place: None, connection: Some(connection), aside: false }
    }

    pub(crate) fn connection(&mut self) -> &mut Http1 {
        self.connection.as_mut().expect("it is taken out only by `keep`, which takes the whole")
    }

    /// Something has come on it.
    pub(crate) fn moved(&self) {
        if let Some(place) = self.place.as_ref().filter(|_| !self.aside) {
            place.moved();
        }
    }

    /// It is taken for as long as its client likes: others need not wait for its end.
    pub(crate) fn set_aside(&mut self) {
        if let Some(place) = self.place.as_ref().filter(|_| !self.aside) {
            self.aside = place.sets_aside(&mut lock(&place.state));
            place.changed.notify_one();
        }
    }

    /// Keeps it for the next exchange.
    pub(crate) fn keep(mut self) {
        if let (Some(place), Some(connection)) = (&self.place, self.connection.take()) {
            let mut state = lock(&place.state);
            let (unused, displaced) = place.unused(None);
            state.idle.push(Idle { connection, unused });
            drop(state);
            displaced.close();
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            let mut state = lock(&place.state);
            let count = if self.aside { &mut state.aside } else { &mut state.busy };
            *count -= 1;
            drop(state);
            place.moved();
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
    pub(super) fn new(place: Arc<Place>, connection: Http2, number: u64) -> Share {
        Share { place, connection, number }
    }

    fn give_back(&self) -> Option<Displaced> {
        let mut state = lock(&self.place.state);
        let shared = state.shared.iter_mut().find(|shared| shared.number == self.number)?;
        shared.exchanges -= 1;
        if shared.exchanges > 0 {
            return None;
        }
        let (unused, displaced) = self.place.unused(None);
        shared.unused = Some(unused);
        Some(displaced)
    }

    /// Something on the connection has stood still for too long. Perhaps all of it does: it gets no new requests.
    pub(crate) fn retire(&self) {
        lock(&self.place.state).shared.retain(|shared| shared.number != self.number);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let displaced = self.give_back();
        self.place.changed.notify_one();
        if let Some(displaced) = displaced {
            displaced.close();
        }
    }
}

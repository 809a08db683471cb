//! Calls that are spoken on before they are answered (0-RTT, RFC 9001 §4.6), to a ground that was reached before in the life
//! of both processes. Tickets live in memory alone and each is good for one call: ground forgets it when it is used, so what
//! was said early cannot be played to it again. It must not decide what may be said early.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn::{Connection, ZeroRttAccepted};
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use rustls::server::StoresServerSessions;
use rustls::{ClientConfig, NamedGroup, ServerConfig};

use super::CarrierError;
use super::connect::{Begun, Dialer};

/// Tickets that ground gives to each connection, and that the remote keeps. Each takes some 90 bytes, once.
pub(super) const TICKETS: usize = 4;
const MOST_TICKETS: usize = 8;
/// Tickets that calls which wait for an answer leave to those that are spoken on before: they use one to be known at once, which
/// saves them little, and many may go unanswered while the link is cut.
const LEFT: usize = 3;
/// RFC 9001 §4.6.1: for QUIC the one value that allows early data.
const ALLOWED: u32 = u32::MAX;

/// Lets connections that are made with `config` be resumed with one of `tickets`.
pub(super) fn resumed(config: &mut ClientConfig, tickets: &Arc<Tickets>) {
    config.resumption = Resumption::store(Arc::clone(tickets) as Arc<dyn ClientSessionStore>);
    config.enable_early_data = true;
}

/// The same for connections that are not spoken on early: they leave the last tickets.
pub(super) fn resumed_if_many(config: &mut ClientConfig, tickets: &Arc<Tickets>) {
    config.resumption = Resumption::store(Arc::new(Sparing(Arc::clone(tickets))));
}

/// Lets connections be resumed whose sessions are among `sessions`.
pub(super) fn resumable(config: &mut ServerConfig, sessions: &Arc<dyn StoresServerSessions>) {
    config.session_storage = Arc::clone(sessions);
    config.send_tls13_tickets = TICKETS;
    config.max_early_data_size = ALLOWED;
}

/// What ground has given for the next calls.
#[derive(Default)]
pub(super) struct Tickets(Mutex<VecDeque<Tls13ClientSessionValue>>);

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("left", &self.lock().len()).finish()
    }
}

impl Tickets {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Tls13ClientSessionValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut tickets = self.lock();
        if tickets.len() == MOST_TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.lock().pop_back()
    }

    // One group and one version are spoken: nothing else is worth remembering.
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
}

/// The same tickets for whoever has no need of the last ones.
#[derive(Debug)]
struct Sparing(Arc<Tickets>);

impl ClientSessionStore for Sparing {
    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(name, ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut tickets = self.0.lock();
        if tickets.len() > LEFT { tickets.pop_front() } else { None }
    }

    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
}

/// A call on which words may be said before it is answered. Ground may have forgotten this end meanwhile: then the call
/// stands all the same, and what was said early was not heard.
pub struct Early {
    connection: Connection,
    taken: ZeroRttAccepted,
    begun: Begun,
    dialer: Dialer,
}

impl fmt::Debug for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Early").field("addr", &self.connection.remote_address()).finish_non_exhaustive()
    }
}

impl Early {
    /// The connection, for what may be said early.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Waits for the answer: whether what was said early was heard.
    ///
    /// # Errors
    /// As [`Dialer::connect`].
    pub async fn answered(self) -> Result<bool, CarrierError> {
        let Early { connection, taken, begun, dialer } = self;
        let after = dialer.patience(begun.addr);
        let Ok(taken) = tokio::time::timeout(after, taken).await else {
            return Err(CarrierError::NoAnswer { addr: begun.addr, after });
        };
        if let Some(error) = connection.close_reason() {
            return Err(dialer.explain(&error, &begun));
        }
        dialer.reached(&connection, &begun);
        Ok(taken)
    }
}

impl Dialer {
    /// Calls `addr` without waiting for its answer, if a ground with one of `keys` has given a ticket for that.
    pub fn early(&self, addr: SocketAddr, keys: &[crate::identity::PublicKey]) -> Option<Early> {
        let ground = self.ground(keys).ok().filter(|ground| !ground.tickets.is_empty())?;
        let (connecting, begun) = self.begin(addr, &ground.early, &ground.seen).ok()?;
        let (connection, taken) = connecting.into_0rtt().ok()?;
        Some(Early { connection, taken, begun, dialer: self.clone() })
    }
}

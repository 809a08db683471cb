//! The remote's side: calls ground and gives a connection whose peer bears a listed key.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhop_congestion::Choice;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{AsyncUdpSocket, ClientConfig, Connecting, Connection, Endpoint, TokioRuntime, VarInt};

use super::early::{self, Tickets};
use super::{CarrierError, Repairs, lasting_config, layered, protect};
use crate::identity::{Identity, PublicKey};
use crate::learned::Learned;
use crate::memory::{Memory, Recall, local_address};
use crate::path::{End, PathPlan};
use crate::socket::fec::FecSocket;
use crate::tls::{self, Seen};

/// Keys are pinned and names say nothing, but the API wants one; it is not sent.
const SERVER_NAME: &str = "farhop";

/// Calls ground over one socket, as often as needed.
#[derive(Debug, Clone)]
pub struct Dialer {
    endpoint: Endpoint,
    identity: Identity,
    plan: PathPlan,
    choice: Choice,
    memory: Option<Arc<Memory>>,
    learned: Learned,
    fec: Arc<FecSocket>,
    /// By the keys that are accepted.
    grounds: Arc<Mutex<HashMap<Vec<PublicKey>, Ground>>>,
}

/// How a ground is called, and what it gave for the next call.
#[derive(Clone)]
pub(super) struct Ground {
    /// For calls that wait for its answer, and for those that are spoken on before.
    waiting: Arc<QuicClientConfig>,
    pub(super) early: Arc<QuicClientConfig>,
    pub(super) tickets: Arc<Tickets>,
    pub(super) seen: Seen,
}

impl fmt::Debug for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ground").field("tickets", &self.tickets).finish_non_exhaustive()
    }
}

/// A call under way.
pub(super) struct Begun {
    pub(super) addr: SocketAddr,
    recall: Recall,
    seen: Seen,
}

impl Dialer {
    /// A dialer over `socket` for a path like `plan`, whose return link `choice` drives. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// The socket has no local address.
    pub fn new(
        socket: Arc<dyn AsyncUdpSocket>,
        identity: Identity,
        plan: PathPlan,
        choice: Choice,
    ) -> io::Result<Self> {
        Dialer::build(socket, identity, plan, choice, None)
    }

    /// A dialer whose packets in virtual time are the same whenever the `seed` is, for simulations. What QUIC draws at
    /// random can be foretold: no stranger may reach it.
    ///
    /// # Errors
    /// As [`Dialer::new`].
    pub fn replayable(
        socket: Arc<dyn AsyncUdpSocket>,
        identity: Identity,
        plan: PathPlan,
        choice: Choice,
        seed: u64,
    ) -> io::Result<Self> {
        Dialer::build(socket, identity, plan, choice, Some(seed))
    }

    fn build(
        socket: Arc<dyn AsyncUdpSocket>,
        identity: Identity,
        plan: PathPlan,
        choice: Choice,
        seed: Option<u64>,
    ) -> io::Result<Self> {
        let config = lasting_config(&identity, seed);
        let fec = layered(socket, &plan, choice);
        let endpoint = Endpoint::new_with_abstract_socket(config, None, fec.clone(), Arc::new(TokioRuntime))?;
        Ok(Dialer {
            endpoint,
            identity,
            plan,
            choice,
            memory: None,
            learned: Learned::default(),
            fec,
            grounds: Arc::default(),
        })
    }

    /// Lets connections start from what `memory` knows of their paths, and add to it.
    #[must_use]
    pub fn remembering(self, memory: Arc<Memory>) -> Self {
        Dialer { memory: Some(memory), ..self }
    }

    /// Calls `addr` and waits until it has proved to hold one of `keys`: one round trip.
    ///
    /// Ground judges this end's key half a round trip later; when it refuses, the connection fails
    /// with what [`CarrierError::explain`] calls [`CarrierError::Denied`].
    ///
    /// # Errors
    /// Nobody answers within [`PathPlan::handshake_timeout`], the key is another, or the peer speaks
    /// something else.
    pub async fn connect(&self, addr: SocketAddr, keys: &[PublicKey]) -> Result<Connection, CarrierError> {
        let ground = self.ground(keys).map_err(|detail| CarrierError::Setup { addr, detail })?;
        let (connecting, begun) = self.begin(addr, &ground.waiting, &ground.seen)?;
        let after = self.patience(addr);
        match tokio::time::timeout(after, connecting).await {
            Ok(Ok(connection)) => {
                self.reached(&connection, &begun);
                Ok(connection)
            }
            Ok(Err(error)) => Err(self.explain(&error, &begun)),
            Err(_) => Err(CarrierError::NoAnswer { addr, after }),
        }
    }

    /// How long a call is waited for.
    pub(super) fn patience(&self, addr: SocketAddr) -> Duration {
        self.learned.sizes(&self.plan.set(End::Remote), addr.ip()).handshake
    }

    /// How a ground with one of `keys` is called: in the same way each time, since only so sessions are resumed.
    pub(super) fn ground(&self, keys: &[PublicKey]) -> Result<Ground, String> {
        let mut grounds = self.grounds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ground) = grounds.get(keys) {
            return Ok(ground.clone());
        }
        let (seen, tickets) = (Seen::default(), Arc::new(Tickets::default()));
        let listed = keys.to_vec();
        let mut tls = tls::client(&self.identity, move |key| listed.contains(key), &seen)
            .map_err(|error| error.to_string())?;
        // Copies of one configuration, so that either may use what the other was given.
        let mut waiting = tls.clone();
        early::resumed_if_many(&mut waiting, &tickets);
        early::resumed(&mut tls, &tickets);
        let quic = |tls: rustls::ClientConfig| {
            QuicClientConfig::try_from(tls).map(Arc::new).map_err(|error| error.to_string())
        };
        let ground = Ground { waiting: quic(waiting)?, early: quic(tls)?, tickets, seen };
        grounds.insert(keys.to_vec(), ground.clone());
        Ok(ground)
    }

    pub(super) fn begin(
        &self,
        addr: SocketAddr,
        crypto: &Arc<QuicClientConfig>,
        seen: &Seen,
    ) -> Result<(Connecting, Begun), CarrierError> {
        let mut config = ClientConfig::new(crypto.clone());
        let recall = self.memory.as_ref().map_or_else(Recall::nothing, Recall::from);
        let sizes = self.learned.sizes(&self.plan.set(End::Remote), addr.ip());
        let transport = self.plan.transport_config(End::Remote, self.choice, recall.clone(), &sizes);
        config.transport_config(Arc::new(transport));
        let connecting = self
            .endpoint
            .connect_with(config, addr, SERVER_NAME)
            .map_err(|error| CarrierError::Setup { addr, detail: error.to_string() })?;
        Ok((connecting, Begun { addr, recall, seen: seen.clone() }))
    }

    /// Ground has answered and proved who it is.
    pub(super) fn reached(&self, connection: &Connection, begun: &Begun) {
        if let Some(key) = begun.seen.key() {
            begun.recall.identify(&key, begun.addr.ip(), local_address(begun.addr));
        }
        protect(&self.fec, connection, End::Remote, begun.recall.clone());
    }

    pub(super) fn explain(&self, error: &quinn::ConnectionError, begun: &Begun) -> CarrierError {
        CarrierError::explain_handshake(error, begun.addr, self.identity.public(), begun.seen.key())
    }

    /// What outlives the process of what was measured.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_deref()
    }

    /// What carriers have measured of the ways to grounds; the next calls are sized by it.
    pub fn learned(&self) -> &Learned {
        &self.learned
    }

    /// What the repair layers of this end's socket have done.
    pub fn repairs(&self) -> Repairs {
        Repairs(Some(self.fec.clone()))
    }

    /// The local address of the socket.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// This end's public key.
    pub fn public_key(&self) -> PublicKey {
        self.identity.public()
    }

    /// Closes every connection with `code` and `reason` and waits until the peers have been told.
    pub async fn close(&self, code: u32, reason: &str) {
        self.endpoint.close(VarInt::from_u32(code), reason.as_bytes());
        self.endpoint.wait_idle().await;
        if let Some(memory) = &self.memory {
            memory.save();
        }
    }
}

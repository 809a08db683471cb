//! Ground's side: accepts remotes whose keys are listed and tells them apart by name.
//!
//! Address validation: a Retry would cost every carrier a round trip of the long hop, so addresses are
//! validated only while many handshakes are unfinished at once, as in a flood of forged ones.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_tuning::Parameters;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{AsyncUdpSocket, Connection, Endpoint, Incoming, ServerConfig, TokioRuntime, VarInt};
use rustls::pki_types::CertificateDer;
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use tokio::task::JoinSet;

use super::{CarrierError, Repairs, early, lasting_config, layered, protect, token_key};
use crate::begun::{Begun, Handshake};
use crate::identity::{Identity, PublicKey};
use crate::learned::{Learned, MOST_PEERS};
use crate::memory::{Memory, Recall};
use crate::path::{End, PathPlan};
use crate::socket::fec::FecSocket;
use crate::tls::{self, Seen};

/// Above so many unfinished handshakes addresses are validated first (RFC 9000 §8.1.2).
const RETRY_ABOVE: usize = 64;
/// Above so many, further attempts are dropped unanswered.
const MOST_PENDING: usize = 1024;
/// A remote may lose a few packets of its handshake; strangers do not stay longer.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// How long a listener that closes waits for peers to hear of it.
const FAREWELL: Duration = Duration::from_secs(3);

/// Sessions that may be resumed: as many as the last connections of so many remotes were given tickets for. Beyond it the
/// oldest go: whoever comes back with one of those makes a whole handshake, and what it said early is said again. Each takes
/// about half a kilobyte.
const SESSIONS: usize = MOST_PEERS * early::TICKETS;

/// The remotes that ground knows: several keys each, so that keys can be rotated without a break.
#[derive(Debug, Clone, Default)]
pub struct Peers(HashMap<PublicKey, Arc<str>>);

/// Two remotes share a key, so their carriers could not be told apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("remotes '{first}' and '{second}' list the same key '{key}', give each remote keys of its own")]
pub struct DuplicateKey {
    first: String,
    second: String,
    key: PublicKey,
}

impl Peers {
    /// The remotes `(name, key)`; a name may come several times, a key only under one name.
    ///
    /// # Errors
    /// Two names list the same key.
    pub fn new(listed: impl IntoIterator<Item = (String, PublicKey)>) -> Result<Self, DuplicateKey> {
        let mut peers: HashMap<PublicKey, Arc<str>> = HashMap::new();
        for (name, key) in listed {
            match peers.get(&key) {
                Some(first) if **first != *name => {
                    return Err(DuplicateKey { first: first.to_string(), second: name, key });
                }
                _ => peers.insert(key, name.into()),
            };
        }
        Ok(Peers(peers))
    }

    /// The name of the remote that bears `key`.
    pub fn name(&self, key: &PublicKey) -> Option<Arc<str>> {
        self.0.get(key).cloned()
    }
}

/// A remote that has come in.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The established connection.
    pub connection: Connection,
    /// The remote's name in ground's settings.
    pub name: Arc<str>,
    /// The key with which it came.
    pub key: PublicKey,
}

/// A peer that has not come in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Where it called from.
    pub addr: SocketAddr,
    /// Why.
    pub error: CarrierError,
}

/// Accepts remotes on one socket.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    handshakes: JoinSet<Result<Accepted, Refused>>,
}

/// What every handshake needs.
#[derive(Debug)]
struct Shared {
    identity: Identity,
    peers: RwLock<Peers>,
    plan: PathPlan,
    choice: Choice,
    memory: OnceLock<Arc<Memory>>,
    learned: Learned,
    begun: Begun,
    /// Of remotes that may come back.
    sessions: RwLock<Arc<dyn StoresServerSessions>>,
    fec: Arc<FecSocket>,
}

impl Listener {
    /// A listener over `socket` for `peers` behind a path like `plan`, whose forward link `choice`
    /// drives. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The socket has no local address, or TLS rejects the identity.
    pub fn new(
        socket: Arc<dyn AsyncUdpSocket>,
        identity: Identity,
        peers: Peers,
        plan: PathPlan,
        choice: Choice,
    ) -> io::Result<Self> {
        Listener::build(socket, identity, peers, plan, choice, None)
    }

    /// A listener whose packets in virtual time are the same whenever the `seed` is, see [`super::Dialer::replayable`].
    ///
    /// # Errors
    /// As [`Listener::new`].
    pub fn replayable(
        socket: Arc<dyn AsyncUdpSocket>,
        identity: Identity,
        peers: Peers,
        plan: PathPlan,
        choice: Choice,
        seed: u64,
    ) -> io::Result<Self> {
        Listener::build(socket, identity, peers, plan, choice, Some(seed))
    }

    fn build(
        socket: Arc<dyn AsyncUdpSocket>,
        identity: Identity,
        peers: Peers,
        plan: PathPlan,
        choice: Choice,
        seed: Option<u64>,
    ) -> io::Result<Self> {
        let fec = layered(socket, &plan, choice);
        let shared = Arc::new(Shared {
            identity,
            peers: RwLock::new(peers),
            plan,
            choice,
            memory: OnceLock::new(),
            learned: Learned::default(),
            begun: Begun::default(),
            sessions: RwLock::new(ServerSessionMemoryCache::new(SESSIONS)),
            fec: fec.clone(),
        });
        // Each handshake gets a configuration of its own; this one reads first packets only.
        let sizes = plan.first(End::Ground);
        let config =
            shared.server_config(&Seen::default(), &shared.begun.handshake(), Recall::nothing(), &sizes)?;
        let endpoint = Endpoint::new_with_abstract_socket(
            lasting_config(&shared.identity, seed),
            Some(config),
            fec,
            Arc::new(TokioRuntime),
        )?;
        Ok(Listener { endpoint, shared, handshakes: JoinSet::new() })
    }

    /// The next peer whose handshake has ended, well or not; `None` once the listener is closed.
    /// Slow handshakes delay nobody. Cancel safe, but handshakes proceed only while this is awaited
    /// often enough to take up new ones.
    pub async fn accept(&mut self) -> Option<Result<Accepted, Refused>> {
        loop {
            tokio::select! {
                Some(ended) = self.handshakes.join_next() => match ended {
                    Ok(outcome) => return Some(outcome),
                    // Cannot happen short of a defect in a handshake, which must not take ground down.
                    Err(error) => tracing::error!("a handshake task failed: {error}"),
                },
                incoming = self.endpoint.accept() => self.begin(incoming?),
            }
        }
    }

    fn begin(&mut self, incoming: Incoming) {
        let pending = self.handshakes.len();
        if pending >= MOST_PENDING {
            incoming.ignore();
        } else if pending >= RETRY_ABOVE && incoming.may_retry() && !incoming.remote_address_validated() {
            // Fails only for attempts that may not be retried, which the condition excludes.
            let _ = incoming.retry();
        } else {
            let shared = self.shared.clone();
            self.handshakes.spawn(async move { shared.handshake(incoming).await });
        }
    }

    /// Lets connections from now on start from what `memory` knows of their paths, and add to it. The first word counts.
    pub fn remember(&self, memory: Arc<Memory>) {
        let _ = self.shared.memory.set(memory);
    }

    /// Replaces the list of remotes for handshakes from now on; who is in stays in.
    pub fn set_peers(&self, peers: Peers) {
        *self.shared.peers.write().unwrap_or_else(PoisonError::into_inner) = peers;
        // A resumed session is not verified: who is in no list any more must begin anew, and is told why not.
        let sessions = ServerSessionMemoryCache::new(SESSIONS);
        *self.shared.sessions.write().unwrap_or_else(PoisonError::into_inner) = sessions;
    }

    /// What carriers have measured of the ways to remotes; the next ones are sized by it.
    pub fn learned(&self) -> &Learned {
        &self.shared.learned
    }

    /// Handshakes that this end has begun.
    pub fn begun(&self) -> &Begun {
        &self.shared.begun
    }

    /// What the repair layers of this end's socket have done.
    pub fn repairs(&self) -> Repairs {
        Repairs(Some(self.shared.fec.clone()))
    }

    /// The local address of the socket.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Closes every connection with `code` and `reason` and waits, for a bounded time, until the peers have been told. Who was
    /// refused before the path was measured would be listened to for many seconds more.
    pub async fn close(&self, code: u32, reason: &str) {
        self.endpoint.close(VarInt::from_u32(code), reason.as_bytes());
        let _ = tokio::time::timeout(FAREWELL, self.endpoint.wait_idle()).await;
        if let Some(memory) = self.shared.memory.get() {
            memory.save();
        }
    }
}

impl Shared {
    fn server_config(
        self: &Arc<Self>,
        seen: &Seen,
        handshake: &Handshake,
        recall: Recall,
        sizes: &Parameters,
    ) -> io::Result<ServerConfig> {
        let peers = self.clone();
        let mut tls = tls::server(&self.identity, move |key| peers.name(key).is_some(), seen)
            .map_err(io::Error::other)?;
        tls.key_log = handshake.key_log();
        early::resumable(&mut tls, &self.sessions.read().unwrap_or_else(PoisonError::into_inner));
        let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = ServerConfig::new(Arc::new(crypto), token_key(&self.identity));
        let transport = self.plan.transport_config(End::Ground, self.choice, recall, sizes);
        config.transport_config(Arc::new(transport));
        config.max_incoming(MOST_PENDING);
        Ok(config)
    }

    fn name(&self, key: &PublicKey) -> Option<Arc<str>> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).name(key)
    }

    async fn handshake(self: Arc<Self>, incoming: Incoming) -> Result<Accepted, Refused> {
        let addr = incoming.remote_address();
        let seen = Seen::default();
        let refused = |error: CarrierError| Refused { addr, error };
        let explained = |error: &quinn::ConnectionError| {
            let own = self.identity.public();
            refused(CarrierError::explain_handshake(error, addr, own, seen.key()))
        };
        let setup = |error: io::Error| refused(CarrierError::Setup { addr, detail: error.to_string() });

        let recall = self.memory.get().map_or_else(Recall::nothing, Recall::from);
        let sizes = self.learned.sizes(&self.plan.set(End::Ground), addr.ip());
        let handshake = self.begun.handshake();
        let config = self.server_config(&seen, &handshake, recall.clone(), &sizes).map_err(setup)?;
        let connecting = incoming.accept_with(Arc::new(config)).map_err(|error| explained(&error))?;
        // An end that is called can always speak before the handshake is over; this one does if it knows to whom.
        let Ok((connection, established)) = connecting.into_0rtt() else {
            return Err(refused(CarrierError::ClosedHere { addr }));
        };
        handshake.on(&connection);
        let fec = self.fec.clone();
        let protected = connection.clone();
        let recalled = recall.clone();
        let established = async move {
            // Tells whether 0-RTT was taken, and says no as well when the handshake fails.
            established.await;
            if protected.close_reason().is_none() && handshake.over() {
                if let Some(key) = peer_key(&protected) {
                    recalled.identify(&key, addr.ip(), protected.local_ip());
                }
                protect(&fec, &protected, End::Ground, recalled);
            }
        };
        // Who resumes a session has proved who it is with its first packet, and may be answered at once.
        let key = match peer_key(&connection) {
            Some(key) => {
                tokio::spawn(established);
                Some(key)
            }
            None if tokio::time::timeout(HANDSHAKE, established).await.is_ok() => peer_key(&connection),
            None => return Err(refused(CarrierError::NoAnswer { addr, after: HANDSHAKE })),
        };
        if let Some(error) = connection.close_reason() {
            return Err(explained(&error));
        }
        match key.and_then(|key| Some((key, self.name(&key)?))) {
            Some((key, name)) => {
                recall.identify(&key, addr.ip(), connection.local_ip());
                Ok(Accepted { connection, name, key })
            }
            // Struck off the list between the check and now.
            None => {
                connection.close(VarInt::from_u32(0), b"key no longer listed");
                Err(refused(CarrierError::ClosedHere { addr }))
            }
        }
    }
}

/// The key of a peer that has proved to hold it, in this handshake or in the session that this one resumes.
fn peer_key(connection: &Connection) -> Option<PublicKey> {
    let identity = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    tls::peer_key(&identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> PublicKey {
        Identity::from_seed([seed; 32]).public()
    }

    #[test]
    fn a_remote_may_have_several_keys_but_no_two_remotes_the_same() {
        let ship = |seed| ("ship".to_string(), key(seed));
        let peers = Peers::new([ship(1), ship(2), ship(1)]).unwrap();
        assert_eq!(peers.name(&key(2)).as_deref(), Some("ship"));
        assert_eq!(peers.name(&key(3)), None);
        let error = Peers::new([ship(1), ("polar".to_string(), key(1))]).unwrap_err().to_string();
        assert!(
            error.starts_with("remotes 'ship' and 'polar' list the same key 'farhop-ed25519 "),
            "{error}"
        );
    }
}

//! Ground's side: accepts remotes whose keys are listed, tells them apart by name, and gives each further lane to
//! the carrier that it names.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::BytesMut;
use farhop_htotp::mux::{Frame, FrameReader, MOST_LANES, Mux, MuxError};
use farhop_htotp::session::Role;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsStream};

use super::{CarrierId, Connection, Lane, Options, Parts, carrier_id};
use crate::begun::{Begun, Handshake};
use crate::identity::{Identity, PublicKey};
use crate::path::{End, PathPlan};
use crate::quic::{CarrierError, Peers, Refused};
use crate::tls::{self, Seen};

/// Above so many unfinished handshakes, further connections are closed at once.
const MOST_PENDING: usize = 1024;
/// A remote may lose a few packets of its handshake; strangers do not stay longer.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// How long carriers have for their farewell.
const FAREWELL: Duration = Duration::from_secs(3);
/// Before another attempt when the system gives no socket: it has none left, and some will be closed.
const NO_SOCKET: Duration = Duration::from_millis(100);

/// A remote that has come in.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The carrier.
    pub connection: Connection,
    /// The remote's name in ground's settings.
    pub name: Arc<str>,
    /// The key with which it came.
    pub key: PublicKey,
}

/// Accepts remotes on one address.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    shared: Arc<Shared>,
    handshakes: JoinSet<Result<Option<Accepted>, Refused>>,
}

/// What every handshake needs.
struct Shared {
    identity: Identity,
    peers: RwLock<Peers>,
    plan: PathPlan,
    options: Options,
    begun: Begun,
    carriers: Mutex<HashMap<CarrierId, Carrier>>,
    /// A carrier has been added.
    added: Notify,
}

/// A carrier that lanes may join.
struct Carrier {
    key: PublicKey,
    lanes: mpsc::Sender<Box<Lane>>,
    joined: usize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("carriers", &self.lock().len()).finish_non_exhaustive()
    }
}

impl Listener {
    /// A listener on `addr` for `peers` behind a path like `plan`. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The address is taken, foreign or forbidden.
    pub fn bind(
        addr: SocketAddr,
        identity: Identity,
        peers: Peers,
        plan: PathPlan,
        options: Options,
    ) -> io::Result<Self> {
        let socket = options.listen(addr)?;
        let shared = Shared {
            identity,
            peers: RwLock::new(peers),
            plan,
            options,
            begun: Begun::default(),
            carriers: Mutex::default(),
            added: Notify::new(),
        };
        Ok(Listener { socket, shared: Arc::new(shared), handshakes: JoinSet::new() })
    }

    /// The next peer whose handshake has ended, well or not. Slow handshakes delay nobody. Cancel safe, but further
    /// lanes join only while this is awaited often enough to take up new ones.
    pub async fn accept(&mut self) -> Result<Accepted, Refused> {
        loop {
            tokio::select! {
                Some(ended) = self.handshakes.join_next() => match ended {
                    Ok(Ok(Some(accepted))) => return Ok(accepted),
                    Ok(Ok(None)) => {}
                    Ok(Err(refused)) => return Err(refused),
                    // Cannot happen short of a defect in a handshake, which must not take ground down.
                    Err(error) => tracing::error!("a handshake task failed: {error}"),
                },
                incoming = self.socket.accept() => match incoming {
                    Ok((stream, addr)) if self.handshakes.len() < MOST_PENDING => {
                        let shared = Arc::clone(&self.shared);
                        self.handshakes.spawn(async move { shared.handshake(stream, addr).await });
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!("no TCP connection accepted: {error}");
                        tokio::time::sleep(NO_SOCKET).await;
                    }
                },
            }
        }
    }

    /// Replaces the list of remotes for handshakes from now on; who is in stays in.
    pub fn set_peers(&self, peers: Peers) {
        *self.shared.peers.write().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    /// Handshakes that this end has begun.
    pub fn begun(&self) -> &Begun {
        &self.shared.begun
    }

    /// The local address of the socket.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits, for a bounded time, until carriers that were closed have told their peers.
    pub async fn wait_idle(&self) {
        let lanes: Vec<_> = self.shared.lock().values().map(|carrier| carrier.lanes.clone()).collect();
        let all = async {
            for lanes in lanes {
                lanes.closed().await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, all).await;
    }
}

/// How a connection begins.
enum Beginning {
    /// The first lane of a carrier; what it said is for the mux to judge.
    First,
    /// A further one.
    Joins(CarrierId),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<CarrierId, Carrier>> {
        self.carriers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self, key: &PublicKey) -> Option<Arc<str>> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).name(key)
    }

    async fn handshake(
        self: Arc<Self>,
        stream: TcpStream,
        addr: SocketAddr,
    ) -> Result<Option<Accepted>, Refused> {
        let seen = Seen::default();
        let own = self.identity.public();
        let explained = |error: &io::Error| CarrierError::explain_tcp(error, addr, own, seen.key());
        let handshake = self.begun.handshake();
        let begun = tokio::time::timeout(HANDSHAKE, self.begin(stream, &seen, &handshake)).await;
        let begun = begun.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let (lane, id, key, beginning) = begun.map_err(|error| Refused { addr, error: explained(&error) })?;
        let Some(name) = self.name(&key) else {
            // Struck off the list between the check and now.
            return Err(Refused { addr, error: CarrierError::ClosedHere { addr } });
        };
        if !handshake.over() {
            // Its remote goes on elsewhere.
            return Err(Refused { addr, error: CarrierError::ClosedHere { addr } });
        }
        match beginning {
            Beginning::First => {
                // The first connection has begun already: this is for the others, and for carriers to come.
                self.options.prepare(addr.ip()).await;
                let connection = self.add(lane, addr, id, key);
                Ok(Some(Accepted { connection, name, key }))
            }
            Beginning::Joins(id) => match tokio::time::timeout(HANDSHAKE, self.join(id, key, lane)).await {
                Ok(true) => Ok(None),
                _ => {
                    let detail = "it joins a carrier that is not there".into();
                    Err(Refused { addr, error: CarrierError::Protocol { addr, detail } })
                }
            },
        }
    }

    /// TLS, and the first words.
    async fn begin(
        &self,
        stream: TcpStream,
        seen: &Seen,
        handshake: &Handshake,
    ) -> io::Result<(Lane, CarrierId, PublicKey, Beginning)> {
        self.options.apply(&socket2::SockRef::from(&stream))?;
        // A list that changes meanwhile counts as it is when the key is shown.
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut config = tls::server(&self.identity, move |key| peers.name(key).is_some(), seen)
            .map_err(io::Error::other)?;
        config.key_log = handshake.key_log();
        let tls = TlsAcceptor::from(Arc::new(config)).accept(stream).await?;
        let key = tls.get_ref().1.peer_certificates().and_then(tls::peer_key);
        let key = key.ok_or_else(|| io::Error::other("the peer showed no key"))?;
        let mut tls = TlsStream::Server(tls);
        let id = carrier_id(&tls).map_err(io::Error::other)?;
        let mut early = BytesMut::new();
        let beginning = loop {
            if let Some(beginning) = first_word(&mut early).map_err(io::Error::other)? {
                break beginning;
            }
            if tls.read_buf(&mut early).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        Ok((Lane::new(tls, early), id, key, beginning))
    }

    fn add(&self, first: Lane, addr: SocketAddr, id: CarrierId, key: PublicKey) -> Connection {
        let (lanes, joining) = mpsc::channel(MOST_LANES);
        let mut carriers = self.lock();
        carriers.retain(|_, carrier| !carrier.lanes.is_closed());
        carriers.insert(id, Carrier { key, lanes, joined: 1 });
        drop(carriers);
        self.added.notify_waiters();
        let mux = Mux::new(Role::Ground, self.plan.mux_windows(End::Ground));
        let mux = mux.spreading(self.options.spread());
        Connection::new(addr, self.identity.public(), key, Parts { mux, first, joining })
    }

    /// Gives a lane to its carrier, whose first lane may have been overtaken and is waited for then. False when the
    /// carrier has ended or has lanes enough.
    async fn join(&self, id: CarrierId, key: PublicKey, lane: Lane) -> bool {
        loop {
            let added = self.added.notified();
            tokio::pin!(added);
            added.as_mut().enable();
            if let Some(carrier) = self.lock().get_mut(&id) {
                // Whoever knows the name is an end of that carrier; another key all the same is not its remote.
                if carrier.key != key || carrier.joined >= MOST_LANES {
                    return false;
                }
                carrier.joined += 1;
                return carrier.lanes.try_send(Box::new(lane)).is_ok();
            }
            added.await;
        }
    }
}

/// Reads how a lane begins off its first bytes; what follows `JOIN` stays there, and so does all of a first lane.
fn first_word(early: &mut BytesMut) -> Result<Option<Beginning>, MuxError> {
    let mut reader = FrameReader::default();
    reader.push(early);
    Ok(match reader.take()? {
        None => None,
        Some(Frame::Join(id)) => {
            *early = reader.into_rest();
            Some(Beginning::Joins(id))
        }
        Some(_) => Some(Beginning::First),
    })
}

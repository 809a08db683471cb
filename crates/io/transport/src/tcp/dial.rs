//! The remote's side: calls ground, and once more for each further lane.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use farhop_htotp::mux::{Frame, MOST_LANES, Mux};
use farhop_htotp::session::Role;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::{TlsConnector, TlsStream};

use super::{CarrierId, Connection, Lane, Options, Parts, carrier_id};
use crate::identity::{Identity, PublicKey};
use crate::path::{End, PathPlan};
use crate::quic::CarrierError;
use crate::tls::{self, Seen};

/// Calls ground, as often as needed.
#[derive(Debug, Clone)]
pub struct Dialer {
    identity: Identity,
    plan: PathPlan,
    options: Options,
    lanes: usize,
}

impl Dialer {
    /// A dialer for carriers of so many lanes (at most [`MOST_LANES`]) on a path like `plan`.
    pub fn new(identity: Identity, plan: PathPlan, options: Options, lanes: usize) -> Self {
        Dialer { identity, plan, options, lanes: lanes.clamp(1, MOST_LANES) }
    }

    /// Calls `addr` and waits until it has proved to hold one of `keys`: two round trips, one with fast open. Further
    /// lanes join while the carrier is used already.
    ///
    /// Ground judges this end's key half a round trip later; when it refuses, the carrier ends with
    /// [`CarrierError::Denied`].
    ///
    /// # Errors
    /// Nobody answers within two of [`PathPlan::handshake_timeout`], the key is another, or the peer speaks something
    /// else.
    pub async fn connect(&self, addr: SocketAddr, keys: &[PublicKey]) -> Result<Connection, CarrierError> {
        let mut tls = self.call(addr, keys).await?;
        let peer = tls.get_ref().1.peer_certificates().and_then(tls::peer_key);
        let setup = |detail: String| CarrierError::Setup { addr, detail };
        let peer = peer.ok_or_else(|| setup("the peer showed no key".into()))?;
        let id = carrier_id(&tls).map_err(|error| setup(error.to_string()))?;
        let mut mux = Mux::new(Role::Remote, self.plan.mux_windows(End::Remote));
        let mut begin = BytesMut::new();
        mux.poll_output(0, &mut begin);
        self.say(&mut tls, addr, peer, &begin).await?;
        let (sender, joining) = mpsc::channel(MOST_LANES);
        let parts = Parts { mux, first: Lane::new(tls, BytesMut::new()), joining };
        let connection = Connection::new(addr, self.identity.public(), peer, parts);
        if self.lanes > 1 {
            tokio::spawn(self.clone().widen(addr, peer, id, sender));
        }
        Ok(connection)
    }

    /// Calls for the further lanes, for as long as the carrier is there.
    async fn widen(self, addr: SocketAddr, peer: PublicKey, id: CarrierId, lanes: mpsc::Sender<Lane>) {
        let mut calls = JoinSet::new();
        for _ in 1..self.lanes {
            let dialer = self.clone();
            calls.spawn(async move { dialer.join(addr, peer, &id).await });
        }
        loop {
            let joined = tokio::select! {
                () = lanes.closed() => return,
                joined = calls.join_next() => joined,
            };
            match joined {
                Some(Ok(Ok(lane))) => drop(lanes.send(lane).await),
                Some(Ok(Err(error))) => tracing::warn!("a lane less: {error}"),
                Some(Err(error)) => tracing::error!("a task that calls for a lane failed: {error}"),
                None => return,
            }
        }
    }

    async fn join(&self, addr: SocketAddr, peer: PublicKey, id: &CarrierId) -> Result<Lane, CarrierError> {
        let mut tls = self.call(addr, &[peer]).await?;
        self.say(&mut tls, addr, peer, &Frame::Join(*id).encode()).await?;
        Ok(Lane::new(tls, BytesMut::new()))
    }

    /// The first word on a lane, by which ground knows it.
    async fn say(
        &self,
        tls: &mut TlsStream<TcpStream>,
        addr: SocketAddr,
        peer: PublicKey,
        word: &[u8],
    ) -> Result<(), CarrierError> {
        let saying = async {
            tls.write_all(word).await?;
            tls.flush().await
        };
        let explained = |error| CarrierError::explain_tcp(&error, addr, self.identity.public(), Some(peer));
        saying.await.map_err(explained)
    }

    async fn call(&self, addr: SocketAddr, keys: &[PublicKey]) -> Result<TlsStream<TcpStream>, CarrierError> {
        let seen = Seen::default();
        let listed = keys.to_vec();
        let config = tls::client(&self.identity, move |key| listed.contains(key), &seen)
            .map_err(|error| CarrierError::Setup { addr, detail: error.to_string() })?;
        let connector = TlsConnector::from(Arc::new(config));
        // Keys are pinned; the name is not sent.
        let name = ServerName::IpAddress(addr.ip().into());
        let calling = async {
            let stream = self.options.connect(addr).await?;
            connector.connect(name, stream).await
        };
        let after = 2 * self.plan.handshake_timeout();
        let called = tokio::time::timeout(after, calling).await;
        let called = called.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = called
            .map_err(|error| CarrierError::explain_tcp(&error, addr, self.identity.public(), seen.key()))?;
        Ok(TlsStream::Client(stream))
    }

    /// This end's public key.
    pub fn public_key(&self) -> PublicKey {
        self.identity.public()
    }
}

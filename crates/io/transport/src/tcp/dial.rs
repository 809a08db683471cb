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
        let mux = Mux::new(Role::Remote, self.plan.mux_windows(End::Remote));
        let mut mux = mux.spreading(self.options.spread());
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
    async fn widen(self, addr: SocketAddr, peer: PublicKey, id: CarrierId, lanes: mpsc::Sender<Box<Lane>>) {
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
                Some(Ok(Ok(lane))) => drop(lanes.send(Box::new(lane)).await),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::{Peers, Refused};
    use crate::tcp::{Accepted, Listener};

    const PLAN: PathPlan = PathPlan::UNKNOWN;

    fn identity(seed: u8) -> Identity {
        Identity::from_seed([seed; 32])
    }

    fn dialer(seed: u8) -> Dialer {
        Dialer::new(identity(seed), PLAN, Options::new(&PLAN, End::Remote, None).unwrap(), 1)
    }

    fn listener() -> Listener {
        let peers =
            [(1, "ship"), (3, "polar")].map(|(seed, name)| (name.to_owned(), identity(seed).public()));
        let options = Options::new(&PLAN, End::Ground, None).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Listener::bind(any, identity(2), Peers::new(peers).unwrap(), PLAN, options).unwrap()
    }

    /// A first lane, and the name of its carrier.
    async fn first(dialer: &Dialer, listener: &mut Listener) -> (TlsStream<TcpStream>, CarrierId, Accepted) {
        let (addr, ground) = (listener.local_addr().unwrap(), identity(2).public());
        let calling = async {
            let mut tls = dialer.call(addr, &[ground]).await.unwrap();
            let mut begin = BytesMut::new();
            Mux::new(Role::Remote, PLAN.mux_windows(End::Remote)).poll_output(0, &mut begin);
            dialer.say(&mut tls, addr, ground, &begin).await.unwrap();
            let id = carrier_id(&tls).unwrap();
            (tls, id)
        };
        let ((tls, id), accepted) = tokio::join!(calling, listener.accept());
        (tls, id, accepted.unwrap())
    }

    /// What ground says to a lane that joins; lanes that are let in are counted by the carrier.
    async fn refused(dialer: &Dialer, listener: &mut Listener, id: &CarrierId) -> Refused {
        let addr = listener.local_addr().unwrap();
        let (_lane, refused) = tokio::join!(dialer.join(addr, identity(2).public(), id), listener.accept());
        refused.unwrap_err()
    }

    #[tokio::test]
    async fn a_remote_joins_no_carrier_of_another_even_if_it_knows_its_name() {
        let mut listener = listener();
        let (_tls, id, accepted) = first(&dialer(1), &mut listener).await;
        let refused = refused(&dialer(3), &mut listener, &id).await;
        assert!(refused.to_string().contains("joins a carrier that is not there"), "{refused}");
        assert!(accepted.connection.take_parts().unwrap().joining.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_carrier_has_eight_lanes_and_no_more() {
        let mut listener = listener();
        let dialer = dialer(1);
        let (_tls, id, accepted) = first(&dialer, &mut listener).await;
        let mut joining = accepted.connection.take_parts().unwrap().joining;
        let addr = listener.local_addr().unwrap();
        for _ in 1..MOST_LANES {
            let joined = async { tokio::join!(dialer.join(addr, identity(2).public(), &id), joining.recv()) };
            tokio::select! {
                (near, far) = joined => assert!(near.is_ok() && far.is_some()),
                other = listener.accept() => panic!("{other:?}"),
            }
        }
        let refused = refused(&dialer, &mut listener, &id).await;
        assert!(matches!(refused.error, CarrierError::Protocol { .. }), "{refused}");
    }

    #[tokio::test]
    async fn a_lane_that_overtakes_the_first_word_of_its_carrier_waits_for_it() {
        let mut listener = listener();
        let dialer = dialer(1);
        let (addr, ground) = (listener.local_addr().unwrap(), identity(2).public());
        let (first, accepted) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let _ = first.send(listener.accept().await.unwrap());
            listener.accept().await // handshakes proceed meanwhile
        });
        let mut tls = dialer.call(addr, &[ground]).await.unwrap();
        let _lane = dialer.join(addr, ground, &carrier_id(&tls).unwrap()).await.unwrap();
        let mut begin = BytesMut::new();
        Mux::new(Role::Remote, PLAN.mux_windows(End::Remote)).poll_output(0, &mut begin);
        dialer.say(&mut tls, addr, ground, &begin).await.unwrap();
        let accepted = accepted.await.unwrap();
        let mut joining = accepted.connection.take_parts().unwrap().joining;
        assert!(joining.recv().await.is_some());
    }
}

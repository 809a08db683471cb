//! Two ends with an established carrier between them, over the in-process link.

use std::sync::Arc;
use std::time::Duration;

use farhop_fec::Counters;
use farhop_orbit::Profile;
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link, LinkSocket};
use farhop_transport::write_ahead::{Given, WriteAhead};
use quinn::{AsyncUdpSocket, Connection};
use tokio::time::Instant;

/// Both ends, and the established carrier.
pub(crate) struct Ends {
    pub(crate) link: Link,
    pub(crate) dialer: Dialer,
    pub(crate) listener: Listener,
    pub(crate) plan: PathPlan,
    pub(crate) near: Connection,
    pub(crate) far: Connection,
}

pub(crate) async fn ends(profile: &Profile, seed: u64, [at_remote, at_ground]: [u32; 2]) -> Ends {
    meet(profile, seed, [at_remote, at_ground], |socket| socket).await
}

/// Two ends of which each repairs so many per cent; ground sends through what `wrap` makes of its socket.
pub(crate) async fn meet<S: AsyncUdpSocket>(
    profile: &Profile,
    seed: u64,
    [at_remote, at_ground]: [u32; 2],
    wrap: impl FnOnce(Arc<LinkSocket>) -> Arc<S>,
) -> Ends {
    let plan = PathPlan::for_profile(profile);
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, ground_socket, remote_socket) = link::pair(profile, seed);
    let addr = ground_socket.addr();
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let keys = [ground.public()];
    let choice = |end| plan.default_choice(end);
    let (ground_plan, remote_plan) = (plan.with_repair(at_ground), plan.with_repair(at_remote));
    let socket = wrap(ground_socket);
    let mut listener =
        Listener::replayable(socket, ground, peers, ground_plan, choice(End::Ground), seed).unwrap();
    let dialer = Dialer::replayable(remote_socket, remote, remote_plan, choice(End::Remote), !seed).unwrap();
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let far = far.unwrap().unwrap().connection;
    Ends { link, dialer, listener, plan, near: near.unwrap(), far }
}

impl Ends {
    /// What ground's layer has done.
    pub(crate) fn repairs(&self) -> Option<Counters> {
        self.listener.repairs().counters(self.far.remote_address())
    }

    /// Sends objects of `len` bytes from ground to the remote, each on a stream of its own; how long until all are there.
    pub(crate) async fn transfer(&self, objects: usize, len: usize) -> Duration {
        let start = Instant::now();
        let sending = async {
            for number in 0..objects {
                let mut stream = self.far.open_uni().await.unwrap();
                for piece in pattern(len, number).chunks(8 << 10) {
                    stream.write_all(piece).await.unwrap();
                }
                stream.finish().unwrap();
            }
        };
        let receiving = async {
            for _ in 0..objects {
                let mut stream = self.near.accept_uni().await.unwrap();
                let received = stream.read_to_end(len).await.unwrap();
                let number = usize::from(received[0]) << 8 | usize::from(received[1]);
                assert!(received == pattern(len, number), "bytes differ");
            }
            start.elapsed()
        };
        // As the carrier's driver does: room after losses.
        let adapting = async {
            let mut ahead = WriteAhead::new(&self.plan, End::Ground);
            loop {
                ahead.adapt(start.elapsed(), &self.far, Given::default());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            ((), took) = async { tokio::join!(sending, receiving) } => took,
            () = adapting => unreachable!("never ends"),
        }
    }
}

/// Bytes that say which object they are.
pub(crate) fn pattern(len: usize, number: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|index| (index * 31 + index / 251 + number) as u8).collect();
    bytes[..2].copy_from_slice(&(number as u16).to_be_bytes());
    bytes
}

pub(crate) fn hylas(loss: f64) -> Profile {
    Profile::named("geo-hylas2").unwrap().with_loss(loss, loss)
}

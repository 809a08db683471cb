//! The socket layer of forward error correction: between QUIC, which does not notice it, and a socket of any kind.
//! It moves datagrams between `farhop_fec`'s layers and both; what is sent when is decided there.
//!
//! A peer gets a layer once a connection to it has proved who it is (`protect`), never for what comes from
//! the network. What others send in the layer's format is unwrapped and handed to QUIC, and leaves nothing behind.

mod arrive;
mod halving;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use farhop_fec::halves::Joiner;
use farhop_fec::wire::{Datagram, Hello, ROOM, TOKEN};
use farhop_fec::{Counters, Layer, Secret, Terms};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use arrive::Recovered;
pub(crate) use halving::Halving;

use crate::ends::Ends;
use crate::memory::Recall;
use crate::surcharge::Surcharge;

/// A peer that neither sends nor is sent anything for so long is forgotten.
const IDLE: Duration = Duration::from_secs(120);

/// See the module's text.
#[derive(Debug)]
pub struct FecSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    terms: Terms,
    peers: RwLock<HashMap<SocketAddr, Arc<Peer>>>,
    inbox: Mutex<VecDeque<Recovered>>,
    early: Mutex<VecDeque<(SocketAddr, Hello)>>,
    halving: Arc<Halving>,
    halves: Mutex<Joiner<SocketAddr>>,
}

/// What a layer has to do with the rest of its connection.
#[derive(Debug)]
pub(crate) struct Ties {
    /// Where to say what is sent beside QUIC's bytes.
    pub(crate) surcharge: Surcharge,
    /// What ends in these.
    pub(crate) ends: Ends,
    /// Where what is lost is kept for the next connection over this path.
    pub(crate) recall: Recall,
}

impl Ties {
    /// So many bytes go out for each of QUIC's.
    fn spend(&self, share: f64) {
        self.surcharge.set(share);
        self.ends.want(share > 0.0);
    }

    fn end(&self) {
        self.spend(0.0);
    }
}

#[derive(Debug)]
struct Peer {
    epoch: Instant,
    state: Mutex<State>,
    /// Rings when there is something to do earlier than the peer's task knows.
    rearm: Notify,
    task: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
struct State {
    layer: Layer,
    ties: Ties,
    addr: SocketAddr,
    /// How the last batch went out; the layer's own datagrams go the same way.
    ecn: Option<EcnCodepoint>,
    src_ip: Option<IpAddr>,
    last_used: Duration,
    /// When the peer's task will look at the clock.
    armed: Duration,
    batch: Vec<u8>,
    own: Vec<u8>,
}

/// One address for one peer, however the system writes it.
fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every step under these locks is complete in itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn end(&self) {
        lock(&self.state).ties.end();
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl Drop for FecSocket {
    fn drop(&mut self) {
        self.write_peers().values().for_each(|peer| peer.end());
    }
}

impl FecSocket {
    /// A layer over `inner`, which repairs on these terms.
    pub fn new(inner: Arc<dyn AsyncUdpSocket>, terms: Terms) -> Arc<Self> {
        Arc::new(FecSocket {
            inner,
            terms,
            peers: RwLock::default(),
            inbox: Mutex::default(),
            early: Mutex::default(),
            halving: Arc::default(),
            halves: Mutex::default(),
        })
    }

    /// Whether losses are repaired at all.
    pub(crate) fn repairs(&self) -> bool {
        self.terms.most > 0.0
    }

    /// Where to say that datagrams shall go in halves.
    pub(crate) fn halving(&self) -> &Arc<Halving> {
        &self.halving
    }

    /// Brings the layer up towards `addr`, whose connection has proved who it is and gave `secret`; `rtt` is that of
    /// the path. The layer begins with the loss that was kept of it. An earlier layer towards the same address ends. Must be
    /// called inside a tokio runtime.
    pub(crate) fn protect(self: &Arc<Self>, addr: SocketAddr, secret: &Secret, rtt: Duration, ties: Ties) {
        let mut layer = Layer::new(Duration::ZERO, secret, self.terms, rtt);
        layer.remember(ties.recall.loss());
        ties.spend(layer.share());
        let key = canonical(addr);
        lock(&self.early).retain(|(from, hello)| {
            let is_meant = *from == key && layer.knows(&hello.token);
            if is_meant {
                let datagram = Datagram::Hello(*hello);
                let mut bytes = Vec::new();
                datagram.encode(&mut bytes);
                layer.handle(Duration::ZERO, &bytes);
            }
            !is_meant
        });
        let state = State {
            layer,
            ties,
            addr,
            ecn: None,
            src_ip: None,
            last_used: Duration::ZERO,
            armed: Duration::ZERO,
            batch: Vec::new(),
            own: Vec::new(),
        };
        let peer = Arc::new(Peer {
            epoch: Instant::now(),
            state: Mutex::new(state),
            rearm: Notify::new(),
            task: Mutex::default(),
        });
        let task = tokio::spawn(attend(Arc::downgrade(self), Arc::clone(&peer)));
        *lock(&peer.task) = Some(task.abort_handle());
        if let Some(earlier) = self.write_peers().insert(key, peer) {
            earlier.end();
        }
    }

    /// QUIC sends to `to` from now on what it sent to `from`, where the layer is that knows `token`: it goes along. Another's
    /// at that address, who is there no more, ends.
    pub(crate) fn follow(&self, from: SocketAddr, to: SocketAddr, token: &[u8; TOKEN]) {
        let (from, key) = (canonical(from), canonical(to));
        let mut peers = self.write_peers();
        let is_there = |peer: &Arc<Peer>| lock(&peer.state).layer.knows(token);
        if from == key || !peers.get(&from).is_some_and(is_there) {
            return;
        }
        if let Some(peer) = peers.remove(&from) {
            let mut state = lock(&peer.state);
            state.addr = to;
            // What is lost is another path's from now on, of which nothing is kept.
            if from.ip() != key.ip() {
                state.ties.recall = Recall::nothing();
            }
            drop(state);
            if let Some(earlier) = peers.insert(key, peer) {
                earlier.end();
            }
        }
    }

    /// The path to this address takes so long when it is empty.
    pub(crate) fn fit(&self, addr: SocketAddr, rtt: Duration) {
        if let Some(peer) = self.peer(addr) {
            lock(&peer.state).layer.fit(rtt);
        }
    }

    /// What has passed between this socket and `addr`, if there is a layer.
    pub fn counters(&self, addr: SocketAddr) -> Option<Counters> {
        self.peer(addr).map(|peer| lock(&peer.state).layer.counters())
    }

    fn write_peers(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<SocketAddr, Arc<Peer>>> {
        self.peers.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn peer(&self, addr: SocketAddr) -> Option<Arc<Peer>> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.get(&canonical(addr)).cloned()
    }

    /// Ends the layer of a peer that is idle; true if it has ended.
    fn forget_if_idle(&self, peer: &Arc<Peer>, now: Duration) -> bool {
        let (addr, last_used) = {
            let state = lock(&peer.state);
            (canonical(state.addr), state.last_used)
        };
        if now < last_used + IDLE {
            return false;
        }
        let mut peers = self.write_peers();
        if peers.get(&addr).is_some_and(|current| Arc::ptr_eq(current, peer)) {
            peers.remove(&addr);
        }
        lock(&peer.state).ties.end();
        true
    }

    /// Sends what the layer has to say; what the socket has no room for is lost like any datagram.
    fn flush(&self, state: &mut State, now: Duration) {
        let State { layer, own, addr, ecn, src_ip, .. } = state;
        own.clear();
        while layer.poll_transmit(now, own) {
            let (destination, ecn, src_ip) = (*addr, *ecn, *src_ip);
            let transmit = Transmit { destination, ecn, contents: own, segment_size: None, src_ip };
            if let Err(error) = self.put(&transmit, own.len().saturating_sub(ROOM)) {
                tracing::trace!("a datagram of the repair layer was not sent: {error}");
            }
            own.clear();
        }
    }

    /// Tells the peer's task of a wake-up that it does not know yet.
    fn arm(peer: &Peer, state: &mut State) {
        if let Some(wakeup) = state.layer.next_wakeup().filter(|wakeup| *wakeup < state.armed) {
            state.armed = wakeup;
            peer.rearm.notify_one();
        }
    }
}

/// Does what a layer wants done by its clock, until its peer is forgotten.
async fn attend(socket: Weak<FecSocket>, peer: Arc<Peer>) {
    loop {
        let next = {
            let Some(socket) = socket.upgrade() else { return };
            let now = peer.now();
            if socket.forget_if_idle(&peer, now) {
                return;
            }
            let mut state = lock(&peer.state);
            socket.flush(&mut state, now);
            // Never at once again: what is due by its clock is done.
            let earliest = now + Duration::from_millis(1);
            let latest = (state.last_used + IDLE).max(earliest);
            state.armed = state.layer.next_wakeup().unwrap_or(latest).clamp(earliest, latest);
            peer.epoch + state.armed
        };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = peer.rearm.notified() => {}
        }
    }
}

impl AsyncUdpSocket for FecSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let packets = transmit.contents;
        let stride = transmit.segment_size.unwrap_or(packets.len());
        let Some(peer) = self.peer(transmit.destination) else { return self.put(transmit, stride) };
        let mut state = lock(&peer.state);
        let state = &mut *state;
        let now = peer.now();
        (state.ecn, state.src_ip, state.last_used) = (transmit.ecn, transmit.src_ip, now);
        state.batch.clear();
        for end in state.ties.ends.take() {
            state.layer.expect(end.bytes, end.urgent);
        }
        let Some(framed) = state.layer.frame(packets, stride, &mut state.batch) else {
            return self.put(transmit, stride);
        };
        let batch = Transmit {
            contents: &state.batch,
            segment_size: transmit.segment_size.map(|_| framed),
            ..transmit.clone()
        };
        self.put(&batch, stride)?;
        state.layer.sent(now, packets, stride);
        self.flush(state, now);
        Self::arm(&peer, state);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let recovered = self.take_recovered(bufs, meta);
        if recovered > 0 {
            return Poll::Ready(Ok(recovered));
        }
        let received = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        // A buffer in which nothing is left stays with a length of zero: QUIC finds no datagram in it and asks again.
        for (buf, meta) in bufs.iter_mut().zip(meta).take(received) {
            self.unwrap(buf, meta);
        }
        Poll::Ready(Ok(received))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

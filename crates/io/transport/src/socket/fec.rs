//! The socket layer of forward error correction: between QUIC, which does not notice it, and a socket of any kind.
//! It moves datagrams between `farhop_fec`'s layers and both; what is sent when is decided there.
//!
//! A peer gets a layer once a connection to it has proved who it is ([`FecSocket::protect`]), never for what comes from
//! the network. What others send in the layer's format is unwrapped and handed to QUIC, and leaves nothing behind.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use farhop_fec::wire::{Datagram, Hello, is_ours};
use farhop_fec::{Counters, Layer, Outcome, Secret, Terms};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A peer that neither sends nor is sent anything for so long is forgotten.
const IDLE: Duration = Duration::from_secs(120);
/// Hellos kept that came before the handshake they belong to was through.
const EARLY: usize = 64;
/// Packets brought back that wait for QUIC to read them; it always does at once.
const INBOX: usize = 1024;

/// See the module's text.
#[derive(Debug)]
pub struct FecSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    terms: Terms,
    peers: RwLock<HashMap<SocketAddr, Arc<Peer>>>,
    inbox: Mutex<VecDeque<Recovered>>,
    early: Mutex<VecDeque<(SocketAddr, Hello)>>,
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

#[derive(Debug)]
struct Recovered {
    packet: Vec<u8>,
    addr: SocketAddr,
    dst_ip: Option<IpAddr>,
    ecn: Option<EcnCodepoint>,
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
        })
    }

    /// Brings the layer up towards `addr`, whose connection has proved who it is and gave `secret`; `rtt` is that of
    /// the path. An earlier layer towards the same address ends. Must be called inside a tokio runtime.
    pub fn protect(self: &Arc<Self>, addr: SocketAddr, secret: &Secret, rtt: Duration) {
        let mut layer = Layer::new(Duration::ZERO, secret, self.terms, rtt);
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
        true
    }

    /// Sends what the layer has to say; what the socket has no room for is lost like any datagram.
    fn flush(&self, state: &mut State, now: Duration) {
        let State { layer, own, addr, ecn, src_ip, .. } = state;
        own.clear();
        while layer.poll_transmit(now, own) {
            let (destination, ecn, src_ip) = (*addr, *ecn, *src_ip);
            let transmit = Transmit { destination, ecn, contents: own, segment_size: None, src_ip };
            if let Err(error) = self.inner.try_send(&transmit) {
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

    /// A hello from an address without a layer that knows it: of a peer whose address has changed, or of one whose
    /// handshake is not through yet.
    fn handle_stray(&self, addr: SocketAddr, datagram: &[u8]) {
        let Some(Datagram::Hello(hello)) = Datagram::decode(datagram) else { return };
        let key = canonical(addr);
        let mut peers = self.write_peers();
        let moved = peers.iter().find(|(_, peer)| lock(&peer.state).layer.knows(&hello.token));
        if let Some(old) = moved.map(|(old, _)| *old) {
            if let Some(peer) = peers.remove(&old) {
                lock(&peer.state).addr = addr;
                peers.insert(key, peer);
            }
            return;
        }
        drop(peers);
        let mut early = lock(&self.early);
        early.truncate(EARLY - 1);
        early.push_front((key, hello));
    }

    /// Takes the layer's datagrams out of a buffer and the packets out of their frames. What stays has one stride; the rest
    /// goes into the inbox.
    fn unwrap(&self, buf: &mut [u8], meta: &mut RecvMeta) {
        let stride = meta.stride.max(1);
        if !buf[..meta.len].chunks(stride).any(is_ours) {
            return;
        }
        let peer = self.peer(meta.addr);
        let mut state = peer.as_ref().map(|peer| (peer.now(), lock(&peer.state)));
        let mut aside = Vec::new();
        let mut out = Outgoing::default();
        for start in (0..meta.len).step_by(stride) {
            let end = meta.len.min(start + stride);
            let datagram = &buf[start..end];
            let packet = match &mut state {
                _ if !is_ours(datagram) => Some(start),
                Some((now, state)) => match state.layer.handle(*now, datagram) {
                    Outcome::Packet(header) => Some(start + header),
                    Outcome::Taken => None,
                    Outcome::Ignored => {
                        aside.push(datagram.to_vec());
                        None
                    }
                },
                None => match Datagram::decode(datagram) {
                    Some(Datagram::Source(source)) => Some(end - source.packet.len()),
                    _ => {
                        aside.push(datagram.to_vec());
                        None
                    }
                },
            };
            if let Some(from) = packet
                && !out.append(buf, from, end)
            {
                self.deliver(Recovered {
                    packet: buf[from..end].to_vec(),
                    addr: meta.addr,
                    dst_ip: meta.dst_ip,
                    ecn: meta.ecn,
                });
            }
        }
        if let (Some(peer), Some((now, state))) = (&peer, &mut state) {
            state.last_used = *now;
            while let Some((packet, loud)) = state.layer.poll_recovered() {
                // As if received; marked where the sender knows no other sign of congestion (RFC 9265 §2).
                let ecn = if loud { meta.ecn.and(Some(EcnCodepoint::Ce)) } else { meta.ecn };
                self.deliver(Recovered { packet, addr: meta.addr, dst_ip: meta.dst_ip, ecn });
            }
            self.flush(state, *now);
            Self::arm(peer, state);
        }
        drop(state);
        for datagram in aside {
            self.handle_stray(meta.addr, &datagram);
        }
        (meta.len, meta.stride) = (out.len, out.stride.max(1));
    }

    fn deliver(&self, recovered: Recovered) {
        let mut inbox = lock(&self.inbox);
        if inbox.len() < INBOX {
            inbox.push_back(recovered);
        }
    }

    /// Hands over packets that were brought back.
    fn take_recovered(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let mut inbox = lock(&self.inbox);
        let mut filled = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let Some(Recovered { packet, addr, dst_ip, ecn }) = inbox.pop_front() else { break };
            let len = packet.len().min(buf.len());
            buf[..len].copy_from_slice(&packet[..len]);
            *meta = RecvMeta { addr, len, stride: len, ecn, dst_ip };
            filled += 1;
        }
        filled
    }
}

/// Datagrams moved together at the front of a buffer: all of one size, but for the last.
#[derive(Default)]
struct Outgoing {
    len: usize,
    stride: usize,
    is_closed: bool,
}

impl Outgoing {
    /// Moves `buf[from..end]` to the front; false if it does not fit in with what is there.
    fn append(&mut self, buf: &mut [u8], from: usize, end: usize) -> bool {
        let size = end - from;
        if self.len == 0 {
            self.stride = size;
        }
        if self.is_closed || size > self.stride {
            return false;
        }
        self.is_closed = size < self.stride;
        buf.copy_within(from..end, self.len);
        self.len += size;
        true
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
        let Some(peer) = self.peer(transmit.destination) else { return self.inner.try_send(transmit) };
        let packets = transmit.contents;
        let stride = transmit.segment_size.unwrap_or(packets.len());
        let mut state = lock(&peer.state);
        let state = &mut *state;
        let now = peer.now();
        (state.ecn, state.src_ip, state.last_used) = (transmit.ecn, transmit.src_ip, now);
        state.batch.clear();
        let Some(framed) = state.layer.frame(packets, stride, &mut state.batch) else {
            return self.inner.try_send(transmit);
        };
        self.inner.try_send(&Transmit {
            contents: &state.batch,
            segment_size: transmit.segment_size.map(|_| framed),
            ..transmit.clone()
        })?;
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

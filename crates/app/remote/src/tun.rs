//! What comes by a TUN device, where nothing is diverted (TPROXY): packets of whole subnets. Connections are handed to this machine's own
//! kernel, which accepts them: from an address of ours each, to a listener of ours, and back again. Datagrams go to the UDP component. All
//! else, and what is not to be caught, goes on as it came.
//!
//! ```text
//! client:4000 ▶ server:80 ── from peer:1024 to listener ──▶ kernel ── accept: peer:1024 ──▶ who that is, the table knows
//! client:4000 ◀ server:80 ── from listener to peer:1024 ◀── kernel
//! ```

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use farhop_netdev::{Catch, Tun};
use farhop_packets::{Complaint, Ends, Fragments, Packet, Segment, Table, complaint, datagram, readdress};
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use crate::Remote;
use crate::udp::{Answerer, Answers, Flows};

/// The largest packet.
const LARGEST: usize = 65_535;
/// Packets taken before others have a turn.
const BATCH: usize = 64;
/// Connections of a family have as many ports as there are; the front bounds how many are served.
const MOST: usize = usize::MAX;

/// Where the kernel accepts connections of a family.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The listener.
    pub listener: SocketAddr,
    /// The address from which connections come to it: of the device's network, and no machine's.
    pub peer: IpAddr,
}

/// A TUN device, and what of its packets is caught.
pub struct Device {
    tun: AsyncFd<Tun>,
    places: Vec<Place>,
    connections: Mutex<Table>,
    /// What begins and is caught; nothing any more once the remote is told to end.
    catch: RwLock<Option<Catch>>,
    /// Tells the packets that are made here from each other.
    made: AtomicU32,
    began: Instant,
}

impl Device {
    /// Catches nothing before [`Device::set`].
    ///
    /// # Errors
    /// The device cannot be waited for.
    pub fn new(tun: Tun, places: Vec<Place>) -> io::Result<Device> {
        #[expect(
            deprecated,
            reason = "what took its place is unsafe, for types whose descriptor may change: this one's does not"
        )]
        let tun = AsyncFd::new(tun)?;
        Ok(Device {
            tun,
            places,
            connections: Mutex::new(Table::new(MOST)),
            catch: RwLock::new(None),
            made: AtomicU32::new(0),
            began: Instant::now(),
        })
    }

    /// From now on this is caught of what begins. What was caught goes on.
    pub fn set(&self, catch: Option<Catch>) {
        *self.catch.write().unwrap_or_else(PoisonError::into_inner) = catch;
    }

    /// The connection that has come to a listener from here.
    pub(crate) fn connection(&self, peer: SocketAddr) -> Option<Ends> {
        let is_peer = self.places.iter().any(|place| place.peer == peer.ip());
        if is_peer { self.connections().of(peer.port()) } else { None }
    }

    fn connections(&self) -> MutexGuard<'_, Table> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn place(&self, family: IpAddr) -> Option<Place> {
        self.places.iter().copied().find(|place| place.peer.is_ipv4() == family.is_ipv4())
    }

    /// Gives the kernel a packet; one that it does not take is lost, as anywhere.
    fn give(&self, packet: &[u8]) {
        let _ = self.tun.get_ref().send(packet);
    }

    fn give_datagram(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        datagram(from, to, payload, id).iter().for_each(|packet| self.give(packet));
    }

    /// Whether what begins between these ends is caught.
    fn catches(&self, ends: Ends, ports: impl Fn(&Catch) -> &[(u16, u16)]) -> bool {
        let catch = self.catch.read().unwrap_or_else(PoisonError::into_inner);
        catch.as_ref().is_some_and(|catch| {
            let port = ends.to.port();
            ports(catch).iter().any(|(first, last)| (*first..=*last).contains(&port))
                && catch.clients.iter().any(|range| range.contains(ends.client.ip()))
                && !catch.except.iter().any(|range| range.contains(ends.to.ip()))
        })
    }

    /// Takes a packet that the kernel has routed here.
    fn take(&self, bytes: &mut [u8], fragments: &mut Fragments, datagrams: impl Fn(Ends, Bytes)) {
        let Some(packet) = Packet::read(bytes) else { return };
        let (segment, ends_of) = (packet.segment(), (packet.from, packet.to));
        if let Some(segment) = segment {
            return self.take_segment(bytes, &segment, ends_of);
        }
        if !packet.is_udp() {
            return self.give(bytes);
        }
        let Some((ends, payload)) = fragments.datagram(self.now(), &packet) else { return };
        if self.catches(ends, |catch| &catch.datagram_ports) {
            datagrams(ends, payload.into());
        } else if packet.is_fragment() {
            self.give_datagram(ends.client, ends.to, &payload);
        } else {
            self.give(bytes);
        }
    }

    fn take_segment(&self, bytes: &mut [u8], segment: &Segment, (from, to): (IpAddr, IpAddr)) {
        let Some(place) = self.place(from) else { return };
        let (now, mut connections) = (self.now(), self.connections());
        let ends = Ends { client: SocketAddr::new(from, segment.from), to: SocketAddr::new(to, segment.to) };
        let moved = if to == place.peer {
            // The kernel's, for the client.
            let Some(ends) = connections.inward(now, segment.to, segment) else { return };
            (ends.to, ends.client)
        } else if connections.knows(ends) || self.catches(ends, |catch| &catch.ports) {
            match connections.outward(now, ends, segment) {
                Some(port) => (SocketAddr::new(place.peer, port), place.listener),
                // There is no room: it is asked again.
                None if segment.opens => return,
                // It began before, and goes on as it did.
                None => return self.give(bytes),
            }
        } else {
            return self.give(bytes);
        };
        drop(connections);
        if readdress(bytes, moved.0, moved.1) {
            self.give(bytes);
        }
    }
}

impl Answers for Device {
    fn socket(&self, _: Ends) -> io::Result<Option<std::net::UdpSocket>> {
        Ok(None)
    }

    fn answer(&self, ends: Ends, payload: &[u8]) {
        self.give_datagram(ends.to, ends.client, payload);
    }

    fn complain(&self, what: Complaint, ends: Ends) {
        if let Some(packet) = complaint(what, ends.client, ends.to) {
            self.give(&packet);
        }
    }
}

/// Takes what comes by the device until the future is dropped.
pub(crate) async fn serve(remote: Arc<Remote>, device: Arc<Device>) {
    let flows: Option<Arc<Flows>> = remote.flows.get().cloned();
    let answerer: Answerer = Arc::clone(&device) as Answerer;
    let take = |ends: Ends, payload: Bytes| {
        if let Some(flows) = &flows {
            flows.take(&remote, ends, payload, &answerer);
        }
    };
    let (mut buffer, mut fragments) = (vec![0; LARGEST], Fragments::default());
    loop {
        let Ok(mut ready) = device.tun.readable().await else { return };
        for _ in 0..BATCH {
            match device.tun.get_ref().receive(&mut buffer) {
                Ok(Some(length)) => device.take(&mut buffer[..length], &mut fragments, take),
                Ok(None) => {
                    ready.clear_ready();
                    break;
                }
                Err(error) => {
                    tracing::error!(target: "farhop", "nothing is caught any more: the TUN device is gone ({error}); start the remote again");
                    return;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

//! The UDP component near the internet: a socket for each flow, connected to where it leads, so that nobody else's datagrams
//! come in and ICMP's complaints are this flow's. What a flow's stream and datagrams say is docs/udp.md's.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farhop_component::{Component, Datagrams, GroundHalf, UDP};
use farhop_events::{Event, ExchangeId};
use farhop_htotp::datagram::Form;
use farhop_htotp::flow::{LARGEST, Reader, Record};
use farhop_htotp::frame::{Failure, Tunnel};
use farhop_packets::Complaint;
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver, Sender};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::carrier::Carrier;
use crate::failure;

/// Flows at a time, of all remotes. Each is a descriptor.
const MOST: usize = 16_384;
/// Datagrams that wait for a flow's task.
const WAITING: usize = 64;
/// The remote ends flows that carry nothing; this is for one that does not (RFC 4787 REQ-5 asks for five minutes at the most).
const IDLE: Duration = Duration::from_secs(10 * 60);

/// By remote and number.
type Key = (Arc<str>, u64);
/// What came on a carrier.
type Came = (Hop, Form, Bytes);

/// See the module.
#[derive(Default)]
pub(super) struct Udp(Arc<Flows>);

#[derive(Default)]
struct Flows(Mutex<HashMap<Key, mpsc::Sender<Came>>>);

/// A flow that is known by its number, until it is dropped or another of that number begins.
struct Known {
    flows: Arc<Flows>,
    key: Key,
    own: mpsc::WeakSender<Came>,
}

impl Drop for Known {
    fn drop(&mut self) {
        let mut flows = self.flows.lock();
        // Once another has taken its place nothing holds its own sender any more.
        let own = self.own.upgrade();
        if flows.get(&self.key).zip(own.as_ref()).is_some_and(|(known, own)| known.same_channel(own)) {
            flows.remove(&self.key);
        }
    }
}

impl Flows {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, mpsc::Sender<Came>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A remote gives no number twice: who begins with one that is there has been started anew, and its carrier of before has not
    /// been found silent yet. That flow ends.
    fn enter(self: &Arc<Self>, key: Key) -> Option<(Known, mpsc::Receiver<Came>)> {
        let mut flows = self.lock();
        if flows.len() >= MOST && !flows.contains_key(&key) {
            return None;
        }
        let (tell, told) = mpsc::channel(WAITING);
        let own = tell.downgrade();
        flows.insert(key.clone(), tell);
        drop(flows);
        Some((Known { flows: Arc::clone(self), key, own }, told))
    }
}

impl GroundHalf<Arc<Carrier>> for Udp {
    fn component(&self) -> &'static Component {
        &UDP
    }

    fn take(&self, carrier: &Arc<Carrier>, incoming: Incoming) -> Option<Incoming> {
        match incoming {
            Incoming::Datagram { flow, form, payload } => {
                let flows = self.0.lock();
                // One of a flow that is over, or too many at once: the network has lost it.
                if let Some(tell) = flows.get(&(Arc::clone(&carrier.remote), flow)) {
                    let _ = tell.try_send((carrier.hop.clone(), form, payload));
                }
            }
            Incoming::Tunnel { asked, sender, receiver } if UDP.is_asked(&asked) => {
                let known = self.0.enter((Arc::clone(&carrier.remote), asked.tunnel));
                let (carrier, counts) = (Arc::clone(carrier), carrier.counted_tunnel());
                tokio::spawn(async move {
                    let _counts = counts;
                    let Some((_known, told)) = known else { return sender.fail(failure::too_many_flows()) };
                    let Tunnel { tunnel: number, user, class, .. } = asked;
                    let datagrams = Datagrams::new(number, user, class);
                    let flow = Flow { number, datagrams, hop: carrier.hop.clone() };
                    flow.serve(&carrier, sender, receiver, told).await;
                });
            }
            other => return Some(other),
        }
        None
    }
}

struct Flow {
    number: u64,
    datagrams: Datagrams,
    /// The carrier that brought the last datagram: answers go there.
    hop: Hop,
}

impl Flow {
    async fn serve(
        mut self,
        carrier: &Carrier,
        mut sender: Sender,
        mut receiver: Receiver,
        mut told: mpsc::Receiver<Came>,
    ) {
        let (mut reader, ground) = (Reader::default(), &carrier.ground);
        let opened = tokio::select! {
            opened = self.open(carrier, &mut reader, &mut receiver) => opened,
            _ = sender.gone() => return,
        };
        let (to, socket) = match opened {
            Ok(opened) => opened,
            Err(failure) => return sender.fail(failure),
        };
        sender.accept_tunnel();
        ground.bus.emit(Event::FlowOpened { exchange: ExchangeId(self.number), to: to.to_string() });
        let mut moved = Instant::now();
        loop {
            // What came with the first record, and with each that follows.
            match reader.take() {
                Ok(Some(Record::Datagram(payload))) => {
                    moved = Instant::now();
                    self.send(&socket, &payload, &mut sender).await;
                    continue;
                }
                Ok(Some(Record::Refresh)) => {
                    self.datagrams.refresh();
                    continue;
                }
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return,
            }
            tokio::select! {
                // What went wrong is among what ICMP has said.
                _ = socket.ready(Interest::READABLE | Interest::ERROR) => {
                    tell(&socket, &mut sender).await;
                    if let Ok(payload) = receive(&socket) {
                        moved = Instant::now();
                        self.datagrams.send(&self.hop, &mut sender, &payload).await;
                    }
                },
                came = told.recv() => {
                    // Another flow has its number.
                    let Some((hop, form, payload)) = came else { break };
                    (self.hop, moved) = (hop, Instant::now());
                    if let Some(payload) = self.datagrams.receive(form, payload, &mut sender).await {
                        self.send(&socket, &payload, &mut sender).await;
                    }
                }
                arrival = receiver.next() => match arrival {
                    Arrival::Body(bytes) => reader.push(&bytes),
                    _ => break,
                },
                () = sleep_until(moved + IDLE) => break,
            }
        }
        sender.finish(None);
    }

    /// Reads where it leads, and connects there if that is allowed.
    async fn open(
        &self,
        carrier: &Carrier,
        reader: &mut Reader,
        receiver: &mut Receiver,
    ) -> Result<(SocketAddr, UdpSocket), Failure> {
        let to = loop {
            match reader.take() {
                Ok(Some(Record::To(to))) => break to,
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Err(failure::no_flow()),
            }
            match receiver.next().await {
                Arrival::Body(bytes) => reader.push(&bytes),
                _ => return Err(failure::no_flow()),
            }
        };
        carrier.ground.origins.may_reach(ExchangeId(self.number), to)?;
        let connect = async {
            let any: IpAddr =
                if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((any, 0)).await?;
            socket.connect(to).await?;
            farhop_netdev::keep_complaints(&socket, to)?;
            Ok::<_, io::Error>(socket)
        };
        connect.await.map(|socket| (to, socket)).map_err(|error| failure::internal(&error))
    }

    /// Towards the destination.
    async fn send(&self, socket: &UdpSocket, payload: &[u8], sender: &mut Sender) {
        if socket.send(payload).await.is_ok() {
            return;
        }
        // As a rule it is about an earlier one, which has been said; this one has not left.
        tell(socket, sender).await;
        let again = socket.try_send(payload).map_err(|error| error.kind());
        if let Err(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) = again {
            say(Complaint::HostUnreachable, sender).await;
        }
    }
}

/// A datagram that is there. Nothing is held for a flow that is idle.
fn receive(socket: &UdpSocket) -> io::Result<Bytes> {
    let mut buffer = [0; LARGEST];
    let length = socket.try_recv(&mut buffer)?;
    Ok(Bytes::copy_from_slice(&buffer[..length]))
}

/// Tells the remote what ICMP has told the socket.
async fn tell(socket: &UdpSocket, sender: &mut Sender) {
    while let Ok(said) = socket.try_io(Interest::ERROR, || farhop_netdev::next_complaint(socket)) {
        if let Some(complaint) = said {
            say(complaint, sender).await;
        }
    }
}

async fn say(complaint: Complaint, sender: &mut Sender) {
    // Its end is heard of by who reads.
    let _ = sender.write(Record::Trouble(complaint).encode()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(remote: &str, number: u64) -> Key {
        (remote.into(), number)
    }

    #[tokio::test]
    async fn a_flow_of_a_remote_that_was_started_anew_takes_the_place_of_the_one_with_its_number() {
        let flows = Arc::new(Flows::default());
        let (before, mut told_before) = flows.enter(key("ship", 1)).unwrap();
        let (other, mut told_other) = flows.enter(key("village", 1)).unwrap();
        let (now, mut told_now) = flows.enter(key("ship", 1)).unwrap();
        assert!(told_before.recv().await.is_none(), "the one before ends");
        assert!(told_now.try_recv().is_err_and(|error| error == mpsc::error::TryRecvError::Empty));
        drop(before);
        assert_eq!(flows.lock().len(), 2, "its end takes nothing of the one that has its place");
        drop(now);
        assert!(told_now.recv().await.is_none());
        assert!(told_other.try_recv().is_err_and(|error| error == mpsc::error::TryRecvError::Empty));
        drop(other);
        assert!(flows.lock().is_empty());
    }
}

//! The UDP component beside the users: datagrams that were caught on their way (TPROXY), by flow of client and destination.
//! The first of a flow comes to a listener; the answers' socket, which bears the destination's address, then takes the
//! others too. What a flow's stream and datagrams say is docs/udp.md's.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farhop_component::{Component, Datagrams, RemoteHalf, UDP};
use farhop_events::{Event, ExchangeId};
use farhop_htotp::datagram::{Form, patience};
use farhop_htotp::flow::{LARGEST, Reader, Record};
use farhop_packets::{Complaint, Ends};
use farhop_settings::RemoteSettings;
use farhop_transport::hop::{Arrival, Incoming, Sender};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use crate::Remote;
use crate::admission::Admission;
use crate::calls::{Calls, Measured};
use crate::components::Attended;
use crate::uplink::Carrier;
use crate::users::User;
use crate::watched::Watched;

/// A question and its answer, and nothing after that (RFC 4787 REQ-5b lets well-known ports be quicker).
pub(crate) const DNS_PORT: u16 = 53;
const DNS_IDLE: Duration = Duration::from_secs(20);
/// Clients that are told at a time what becomes of their datagrams.
const MOST_COMPLAINING: usize = 4;
/// Datagrams that wait for a flow's task.
const WAITING: usize = 64;

/// Speaks for destinations.
pub trait Answers: Send + Sync {
    /// A socket that bears the destination's address, for its answers to the client, and takes what that says from then on. `None` where
    /// [`Answers::answer`] gives them.
    ///
    /// # Errors
    /// The system refuses.
    fn socket(&self, ends: Ends) -> io::Result<Option<std::net::UdpSocket>>;

    /// Gives the client an answer.
    fn answer(&self, ends: Ends, payload: &[u8]);

    /// Lets the client hear what becomes of its datagrams.
    fn complain(&self, what: Complaint, ends: Ends);
}

/// See [`Answers`].
pub type Answerer = Arc<dyn Answers>;

/// See the module.
#[derive(Default)]
pub(crate) struct Udp(Arc<Flows>);

#[derive(Default)]
pub(crate) struct Flows {
    /// By ends: what the listeners take.
    begun: Mutex<HashMap<Ends, mpsc::Sender<Bytes>>>,
    /// By number: what carriers bring.
    known: Mutex<HashMap<u64, mpsc::Sender<(Form, Bytes)>>>,
    /// Clients that are being told what becomes of their datagrams: each may take the helper some milliseconds.
    complaining: AtomicUsize,
    /// What flows to ports of SIP have announced.
    calls: Calls,
    /// What the link manager says of these.
    admission: Admission,
}

/// A flow that has begun, until this is dropped: however its task ends, another may begin in its place.
struct Begun {
    flows: Arc<Flows>,
    ends: Ends,
}

impl Drop for Begun {
    fn drop(&mut self) {
        lock(&self.flows.begun).remove(&self.ends);
    }
}

/// A flow that carriers bring datagrams for by its number, until this is dropped.
struct Known<'a> {
    flows: &'a Flows,
    number: u64,
}

impl<'a> Known<'a> {
    fn enter(flows: &'a Flows, number: u64) -> (Self, mpsc::Receiver<(Form, Bytes)>) {
        let (tell, brought) = mpsc::channel(WAITING);
        lock(&flows.known).insert(number, tell);
        (Known { flows, number }, brought)
    }
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        lock(&self.flows.known).remove(&self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RemoteHalf<Arc<Remote>, Attended> for Udp {
    fn component(&self) -> &'static Component {
        &UDP
    }

    /// The listeners, or the device, come later: [`crate::Running::catch_datagrams`], [`crate::Running::catch_by`].
    fn start(&self, remote: &Arc<Remote>, tasks: &mut JoinSet<()>) {
        // One alone is made.
        let _ = remote.flows.set(Arc::clone(&self.0));
        if let Some(link) = remote.settings().udp.link.clone() {
            let (flows, bus) = (Arc::clone(&self.0), remote.bus().clone());
            tasks.spawn(async move { flows.admission.keep(&flows.calls, &link, &bus).await });
        }
    }

    fn take(&self, _: &Arc<Remote>, _: &Attended, incoming: Incoming) -> Option<Incoming> {
        let Incoming::Datagram { flow, form, payload } = incoming else { return Some(incoming) };
        // One of a flow that is over, or too many at once: the network has lost it.
        if let Some(tell) = lock(&self.0.known).get(&flow) {
            let _ = tell.try_send((form, payload));
        }
        None
    }
}

/// Takes the first datagrams of flows until the future is dropped.
pub(crate) async fn accept(remote: Arc<Remote>, flows: Arc<Flows>, listener: UdpSocket, answerer: Answerer) {
    let mut buffer = vec![0; LARGEST];
    loop {
        let receive = || farhop_netdev::receive_diverted(&listener, &mut buffer);
        let Ok((length, client, to)) = listener.async_io(Interest::READABLE, receive).await else { continue };
        // One that leads to the listener itself was not caught: it would lead here again.
        if listener.local_addr().is_ok_and(|own| own != to) {
            flows.take(&remote, Ends { client, to }, Bytes::copy_from_slice(&buffer[..length]), &answerer);
        }
    }
}

impl Flows {
    /// What calls have announced.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// What the link manager says of calls, for `status`.
    pub(crate) fn calls_told(&self) -> serde_json::Value {
        self.admission.status()
    }

    /// Gives a datagram to its flow, which it begins if that is allowed.
    pub(crate) fn take(
        self: &Arc<Self>,
        remote: &Arc<Remote>,
        ends: Ends,
        payload: Bytes,
        answerer: &Answerer,
    ) {
        let mut begun = lock(&self.begun);
        if let Some(tell) = begun.get(&ends) {
            let _ = tell.try_send(payload);
            return;
        }
        let (settings, address) = (remote.settings(), ends.client.ip().to_canonical());
        let is_ours = settings.clients.iter().any(|range| range.contains(address));
        if !is_ours || !is_room(&begun, ends.client.ip(), &settings) {
            return;
        }
        let (tell, told) = mpsc::channel(WAITING);
        begun.insert(ends, tell);
        drop(begun);
        let (remote, answerer) = (Arc::clone(remote), Arc::clone(answerer));
        let begun = Begun { flows: Arc::clone(self), ends };
        tokio::spawn(async move {
            let flow = Flow { remote: &remote, flows: &begun.flows, ends };
            flow.serve(payload, told, answerer).await;
        });
    }
}

/// Whether another flow of this client has room.
fn is_room(begun: &HashMap<Ends, mpsc::Sender<Bytes>>, client: IpAddr, settings: &RemoteSettings) -> bool {
    let own = begun.keys().filter(|ends| ends.client.ip() == client).count();
    begun.len() < settings.udp.flows as usize && own < settings.udp.flows_per_client as usize
}

struct Flow<'a> {
    remote: &'a Arc<Remote>,
    flows: &'a Arc<Flows>,
    ends: Ends,
}

/// What a flow goes over.
struct Way {
    exchange: ExchangeId,
    carrier: Carrier,
    datagrams: Datagrams,
    sender: Sender,
}

impl Flow<'_> {
    async fn serve(self, first: Bytes, mut told: mpsc::Receiver<Bytes>, answerer: Answerer) {
        let (remote, ends, settings) = (self.remote, self.ends, self.remote.settings());
        let mut passing = Passing::of(&self.flows.calls, ends, &settings);
        let mut watched = Watched::of(remote, &self.flows.calls, ends, &first);
        let class = watched.class;
        passing.passes(&first);
        // What waits longer than this has been sent again.
        let Some(carrier) = remote.uplink().carrier(Instant::now() + patience(class)).await else { return };
        let maker = Arc::clone(&answerer);
        let made = spawn_blocking(move || maker.socket(ends)).await;
        let made = made.map_err(io::Error::other).flatten();
        let client = match made.and_then(|socket| socket.map(UdpSocket::from_std).transpose()) {
            Ok(socket) => Client { socket, answerer, ends },
            Err(error) => {
                return tracing::warn!(target: "farhop", "a flow to {} is not carried: {error}", ends.to);
            }
        };
        let user = remote.users().at(ends.client.ip());
        let exchange = remote.next_exchange();
        let (sender, mut receiver) = carrier.hop.open_tunnel(UDP.tunnel(exchange.0, user.id, class));
        let datagrams = Datagrams::new(exchange.0, user.id, class);
        let mut way = Way { exchange, carrier, datagrams, sender };
        let (known, mut brought) = Known::enter(self.flows, exchange.0);
        remote.bus().emit(Event::FlowOpened { exchange, to: ends.to.to_string() });
        let opened = [Record::To(ends.to).encode(), Record::Datagram(first).encode()].concat();
        let (mut moved, mut reader) = (Instant::now(), Reader::default());
        let mut is_open = way.sender.write(opened.into()).await.is_ok();
        let idle =
            if ends.to.port() == DNS_PORT { settings.udp.idle.min(DNS_IDLE) } else { settings.udp.idle };
        let (mut up, mut down) = (1, 0);
        while is_open {
            tokio::select! {
                // An error is ICMP's, from the client: it has left, and says no more.
                said = client.receive() => match said {
                    Ok(payload) => {
                        is_open = passing.passes(&payload);
                        watched.said(&payload).into_iter().for_each(|class| way.sender.tell_class(class));
                        way.up(remote, &payload).await;
                        (up, moved) = (up + 1, Instant::now());
                    }
                    Err(error) => is_open = error.kind() == io::ErrorKind::WouldBlock,
                },
                Some(payload) = told.recv() => {
                    is_open = passing.passes(&payload);
                    watched.said(&payload).into_iter().for_each(|class| way.sender.tell_class(class));
                    way.up(remote, &payload).await;
                    (up, moved) = (up + 1, Instant::now());
                }
                Some((form, payload)) = brought.recv() => {
                    moved = Instant::now();
                    if let Some(payload) = way.datagrams.receive(form, payload, &mut way.sender).await {
                        is_open = passing.passes(&payload);
                        watched.heard(&payload).into_iter().for_each(|class| way.sender.tell_class(class));
                        client.give(&payload).await;
                        down += 1;
                    }
                }
                arrival = receiver.next() => match arrival {
                    Arrival::TunnelOpened => {}
                    Arrival::Body(bytes) => {
                        reader.push(&bytes);
                        let looks = (&mut passing, &mut watched);
                        is_open = self.hear(&mut reader, &client, &mut way, looks, &mut down).await;
                        moved = Instant::now();
                    }
                    Arrival::Failed(failure) => {
                        self.failed(exchange, &user, failure.to_string());
                        is_open = false;
                    }
                    _ => is_open = false,
                },
                () = sleep_until(moved + idle) => is_open = false,
            }
        }
        drop(known);
        way.sender.finish(None);
        remote.bus().emit(Event::FlowEnded {
            exchange,
            user: user.name.to_string(),
            to: ends.to.to_string(),
            up,
            down,
        });
    }

    /// Lets the client hear what becomes of its datagrams, unless many are being told such.
    fn complain(&self, what: Complaint, answerer: &Answerer) {
        let (flows, answerer, ends) = (Arc::clone(self.flows), Arc::clone(answerer), self.ends);
        if flows.complaining.fetch_add(1, Ordering::Relaxed) >= MOST_COMPLAINING {
            flows.complaining.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        spawn_blocking(move || {
            answerer.complain(what, ends);
            flows.complaining.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// What ground says on the flow's stream; false once it is nothing that belongs there.
    async fn hear(
        &self,
        reader: &mut Reader,
        client: &Client,
        way: &mut Way,
        (passing, watched): (&mut Passing<'_>, &mut Watched<'_>),
        down: &mut u64,
    ) -> bool {
        loop {
            match reader.take() {
                Ok(Some(Record::Datagram(payload))) => {
                    if !passing.passes(&payload) {
                        return false;
                    }
                    watched.heard(&payload).into_iter().for_each(|class| way.sender.tell_class(class));
                    client.give(&payload).await;
                    *down += 1;
                }
                Ok(Some(Record::Trouble(trouble))) => {
                    let (to, why) = (self.ends.to.to_string(), format!("{trouble:?}"));
                    let exchange = way.exchange;
                    self.remote.bus().emit(Event::FlowTrouble { exchange, to, why });
                    self.complain(trouble, &client.answerer);
                    if trouble == Complaint::PortUnreachable {
                        // While the flow has a socket its client's datagrams go there, and nobody would hear.
                        return false;
                    }
                }
                Ok(Some(Record::Refresh)) => way.datagrams.refresh(),
                Ok(None) => return true,
                Ok(Some(Record::To(_))) | Err(_) => return false,
            }
        }
    }

    fn failed(&self, exchange: ExchangeId, user: &User, error: String) {
        tracing::debug!(target: "farhop", "flow {exchange} of {} to {}: {error}", user.name, self.ends.to);
    }
}

/// Whether calls announce themselves by this port.
pub(crate) fn is_of_sip(port: u16, settings: &RemoteSettings) -> bool {
    settings.udp.sip_ports.iter().any(|range| range.contains(port))
}

/// What is looked at of a flow's datagrams, in both directions.
struct Passing<'a> {
    calls: &'a Calls,
    ends: Ends,
    is_sip: bool,
    /// Of a flow that a call has announced.
    speech: Option<Measured>,
}

impl<'a> Passing<'a> {
    fn of(calls: &'a Calls, ends: Ends, settings: &RemoteSettings) -> Self {
        let is_sip = is_of_sip(ends.to.port(), settings);
        let is_speech = calls.speaks(Instant::now(), ends) || calls.is_refused(ends);
        let speech = is_speech.then(Measured::default);
        Passing { calls, ends, is_sip, speech }
    }

    /// False once it is no speech although it was announced: the flow ends, and its next datagram begins one of another class.
    fn passes(&mut self, payload: &[u8]) -> bool {
        let now = Instant::now();
        if self.is_sip {
            self.calls.hear(now, payload);
        }
        let goes_on = self.speech.as_mut().is_none_or(|speech| speech.passed(now, payload.len()));
        if !goes_on {
            self.calls.pours(self.ends);
        }
        goes_on
    }
}

/// The client of a flow.
struct Client {
    socket: Option<UdpSocket>,
    answerer: Answerer,
    ends: Ends,
}

impl Client {
    /// What it says, where that does not come to the flow another way. Nothing is held for a flow that is idle.
    async fn receive(&self) -> io::Result<Bytes> {
        let Some(socket) = &self.socket else { return std::future::pending().await };
        socket.readable().await?;
        let mut buffer = [0; LARGEST];
        let length = socket.try_recv(&mut buffer)?;
        Ok(Bytes::copy_from_slice(&buffer[..length]))
    }

    /// A client that does not take it loses it.
    async fn give(&self, payload: &[u8]) {
        match &self.socket {
            Some(socket) => drop(socket.send(payload).await),
            None => self.answerer.answer(self.ends, payload),
        }
    }
}

impl Way {
    /// Towards ground, over the carrier that there is.
    async fn up(&mut self, remote: &Remote, payload: &[u8]) {
        if self.carrier.hop.closed().is_some()
            && let Some(carrier) = remote.uplink().now()
        {
            self.carrier = carrier;
        }
        self.datagrams.send(&self.carrier.hop, &mut self.sender, payload).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_a_port_of_sip_makes_the_media_that_it_announces_voice() {
        let settings: farhop_settings::LocalSettings = farhop_settings::parse("", "".as_ref(), &[]).unwrap();
        let (settings, calls) = (settings.remote, Calls::default());
        let ends = |client: &str, to: &str| Ends { client: client.parse().unwrap(), to: to.parse().unwrap() };
        let media = ends("10.0.0.5:16384", "192.0.2.9:20000");
        let sdp = "v=0\r\nc=IN IP4 10.0.0.5\r\nm=audio 16384 RTP/AVP 0\r\n";
        let invite = format!(
            "INVITE sip:b@example.org SIP/2.0\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\nContent-Type: application/sdp\r\n\
             Content-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        );
        // Elsewhere it is anybody's text.
        for (port, is_heard) in [(5070, false), (5060, true)] {
            let mut passing =
                Passing::of(&calls, ends("10.0.0.5:5060", &format!("192.0.2.1:{port}")), &settings);
            assert!(passing.speech.is_none() && passing.passes(invite.as_bytes()));
            assert_eq!(Passing::of(&calls, media, &settings).speech.is_some(), is_heard);
        }
        let mut passing = Passing::of(&calls, media, &settings);
        assert!(passing.passes(&[0; 172]));
        assert!((0..1000).any(|_| !passing.passes(&[0; 1200])), "it pours");
        assert!(Passing::of(&calls, media, &settings).speech.is_none());
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_flow_whose_task_panics() {
        let flows = Arc::new(Flows::default());
        let ends = Ends { client: "192.0.2.1:4000".parse().unwrap(), to: "192.0.2.9:53".parse().unwrap() };
        lock(&flows.begun).insert(ends, mpsc::channel(1).0);
        let begun = Begun { flows: Arc::clone(&flows), ends };
        let task = tokio::spawn(async move {
            let (_known, _brought) = Known::enter(&begun.flows, 7);
            assert!(lock(&begun.flows.known).is_empty(), "it ends here");
        });
        assert!(task.await.unwrap_err().is_panic());
        assert!(lock(&flows.begun).is_empty() && lock(&flows.known).is_empty());
    }
}

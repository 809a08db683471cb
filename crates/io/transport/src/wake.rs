//! Wakes a QUIC connection that an outage has put to sleep. With a window full of packets that nobody acknowledges QUIC sends
//! nothing new, and probes at doubled intervals (RFC 9002 §6.2.1): after a cut of a minute, another may pass before it tries
//! again. Whoever knows better, since the peer was just heard or must be asked whether it is there, has the window leave room
//! beside what is in flight, as for QUIC's own probes (RFC 9002 §7.5); the first acknowledgement then shows what was lost,
//! and all of it is sent again at once. It must not decide when: HTOTP's session does.
//!
//! Where large packets are what the path does not take, what is sent on waking is lost like all before it, and QUIC's probes,
//! which would be small, wait for the end of their pause, begun anew by each packet. So whoever wakes with packets in flight
//! that were due to be acknowledged also has the socket send in halves for a while (`socket/fec/halving.rs`); so does who loses
//! large packets while small ones arrive, of which QUIC wants to see four runs before it believes it.

mod flight;

use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use farhop_fec::wire::TOKEN;
use farhop_units::Bytes;
use quinn::Connection;
use quinn::congestion::{Controller, ControllerFactory};

use crate::socket::fec::FecSocket;
use flight::{Flight, SMALL};

type RttEstimator = quinn_proto::RttEstimator;
type Factory = Arc<dyn ControllerFactory + Send + Sync + 'static>;

/// A factory whose controllers can be woken.
pub(crate) fn wakeable(controllers: Factory) -> Factory {
    Arc::new(Wakeable { controllers, way: Way::default() })
}

/// What `connection` has in flight holds up nothing that is sent until the next acknowledgement, and the loss of it is no
/// sign of congestion. False when it is not asleep, or was woken a moment ago.
pub(crate) fn wake(connection: &Connection, now: Instant) -> bool {
    let Some(controller) = woken(connection) else { return false };
    let mut shared = controller.lock();
    let is_overdue = shared.flight.is_overdue(now);
    let is_woken = shared.flight.wake(now);
    if is_woken && is_overdue {
        shared.halve(now);
    }
    is_woken
}

/// Bytes that the peer of `connection` has acknowledged.
pub(crate) fn acknowledged(connection: &Connection) -> Bytes {
    Bytes(woken(connection).map_or(0, |controller| controller.lock().acknowledged))
}

/// What is sent on `connection` goes in halves by way of `socket` when it needs to, and its layer, whose peer says hello with
/// `token`, follows it when its address changes.
pub(crate) fn send_by(connection: &Connection, socket: &Arc<FecSocket>, token: Option<[u8; TOKEN]>) {
    let to = connection.remote_address();
    if let Some(controller) = woken(connection) {
        *controller.way.lock() = Some(Sending { socket: Arc::downgrade(socket), to, token });
    }
}

/// Has the repairs of a connection know how long its path takes when it is empty.
pub(crate) fn fit(connection: &Connection, rtt: Duration) {
    let Some(woken) = woken(connection) else { return };
    let way = woken.way.lock();
    if let Some(sending) = &*way
        && let Some(socket) = sending.socket.upgrade()
    {
        socket.fit(sending.to, rtt);
    }
}

fn woken(connection: &Connection) -> Option<Box<Woken>> {
    // Without a lock of ours: the connection asks its controller under one of its own.
    let to = connection.remote_address();
    let controller: Box<Woken> = connection.congestion_state().into_any().downcast().ok()?;
    controller.way.lead(to);
    Some(controller)
}

/// The controller of `connection`, as its factory built it; a copy.
pub(crate) fn controller(connection: &Connection) -> Option<Box<dyn Controller>> {
    Some(woken(connection)?.controller)
}

struct Wakeable {
    controllers: Factory,
    way: Way,
}

impl ControllerFactory for Wakeable {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let controller = Arc::clone(&self.controllers).build(now, current_mtu);
        let way = self.way.clone();
        let shared =
            Shared { flight: Flight::default(), acknowledged: 0, mtu: current_mtu, way: way.clone() };
        Box::new(Woken { controller, shared: Arc::new(Mutex::new(shared)), way })
    }
}

/// How a connection's datagrams go out: of all its controllers, of which QUIC has another built when its address changes.
#[derive(Clone, Default)]
struct Way(Arc<Mutex<Option<Sending>>>);

struct Sending {
    socket: Weak<FecSocket>,
    to: SocketAddr,
    /// By which the socket knows the peer's layer, if there is one.
    token: Option<[u8; TOKEN]>,
}

impl Way {
    fn lock(&self) -> MutexGuard<'_, Option<Sending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// QUIC sends to this address: the peer has proved that it is there, or is about to.
    fn lead(&self, to: SocketAddr) {
        let mut way = self.lock();
        let Some(sending) = way.as_mut().filter(|sending| sending.to != to) else { return };
        let from = std::mem::replace(&mut sending.to, to);
        if let (Some(socket), Some(token)) = (sending.socket.upgrade(), &sending.token) {
            socket.follow(from, to, token);
        }
    }
}

/// A controller and what of its flight counts. Clones share the latter: that is how it is reached from outside.
struct Woken {
    controller: Box<dyn Controller>,
    shared: Arc<Mutex<Shared>>,
    way: Way,
}

struct Shared {
    flight: Flight,
    /// Bytes, of all packets.
    acknowledged: u64,
    mtu: u16,
    /// Who sends in halves, and to whom.
    way: Way,
}

impl Shared {
    fn halve(&self, now: Instant) {
        if let Some(sending) = &*self.way.lock()
            && let Some(socket) = sending.socket.upgrade()
            && u64::from(self.mtu) > SMALL
        {
            socket.halving().begin(now, sending.to, self.flight.round_trip(), self.mtu);
        }
    }
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for Woken {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.lock().flight.send(now, bytes);
        self.controller.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        {
            let mut shared = self.lock();
            shared.flight.acknowledge(now, sent, bytes, rtt.get());
            shared.acknowledged += bytes;
        }
        self.controller.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.lock().flight.settle(now, in_flight);
        self.controller.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (all, some) = {
            let mut shared = self.lock();
            if shared.flight.is_narrow(sent, lost_bytes) {
                shared.halve(now);
            }
            shared.flight.lose(sent, lost_bytes)
        };
        if !all {
            // RFC 9002 §7.6 takes a long time in which all is lost for congestion; here it is known to be none.
            let persistent = is_persistent_congestion && !some;
            self.controller.on_congestion_event(now, sent, persistent, lost_bytes);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        {
            let mut shared = self.lock();
            shared.mtu = new_mtu;
            shared.flight.raise();
        }
        self.controller.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.controller.window().saturating_add(self.lock().flight.passed_over())
    }

    fn metrics(&self) -> quinn_proto::congestion::ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (shared, way) = (Arc::clone(&self.shared), self.way.clone());
        Box::new(Woken { controller: self.controller.clone_box(), shared, way })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quinn::congestion::NewRenoConfig;

    use super::*;

    const RTT: Duration = Duration::from_millis(600);

    fn controller() -> (Woken, Instant) {
        let now = Instant::now();
        let controller = wakeable(Arc::new(NewRenoConfig::default())).build(now, 1200);
        (*controller.into_any().downcast().unwrap(), now)
    }

    #[test]
    fn what_was_in_flight_holds_up_nothing_until_the_next_acknowledgement() {
        let (mut controller, now) = controller();
        let window = controller.window();
        controller.on_sent(now, window, 9);
        assert!(controller.lock().flight.wake(now));
        assert_eq!(controller.window(), 2 * window);
        controller.on_end_acks(now, window, false, Some(10));
        assert_eq!(controller.window(), window);
    }

    #[test]
    fn the_controller_of_another_path_still_sends_in_halves() {
        let factory = wakeable(Arc::new(NewRenoConfig::default()));
        let now = Instant::now();
        let build = || Arc::clone(&factory).build(now, 1200).into_any().downcast::<Woken>().unwrap();
        let (first, wire) = (build(), Arc::new(crate::socket::fec::tests::Wire::default()));
        let socket = FecSocket::new(wire, farhop_fec::Terms { most: 0.0, loud: false });
        let [old, new] = [1, 2].map(|last| SocketAddr::from(([192, 0, 2, last], 7)));
        *first.way.lock() = Some(Sending { socket: Arc::downgrade(&socket), to: old, token: None });
        let mut next = build();
        next.way.lead(new);
        next.on_mtu_update(1443);
        next.lock().halve(now);
        assert_eq!(
            [socket.halving().share(old), socket.halving().share(new)].map(|share| share > 0.0),
            [false, true]
        );
    }

    #[test]
    fn what_is_not_asleep_is_not_woken_nor_twice_within_a_round_trip() {
        let (mut controller, now) = controller();
        controller.on_sent(now, 1000, 9);
        controller.lock().flight.acknowledge(now, now - RTT, 1000, RTT);
        controller.on_end_acks(now, 1000, false, Some(9));
        assert!(!controller.lock().flight.wake(now + RTT));
        assert!(controller.lock().flight.wake(now + 2 * RTT));
        assert!(!controller.lock().flight.wake(now + 3 * RTT));
        assert!(controller.lock().flight.wake(now + 4 * RTT));
    }

    #[test]
    fn what_was_acknowledged_late_does_not_make_a_waking_wait() {
        let (mut controller, start) = controller();
        let at = |ms| start + Duration::from_millis(ms);
        // Sent before an outage, and then after it, when QUIC has averaged the first in.
        controller.lock().flight.acknowledge(at(26_000), at(0), 1000, RTT);
        let averaged = RTT + Duration::from_millis(3200);
        controller.lock().flight.acknowledge(at(26_600), at(26_000), 1000, averaged);
        controller.on_end_acks(at(26_600), 1000, false, Some(9));
        assert!(!controller.lock().flight.wake(at(27_300)));
        assert!(controller.lock().flight.wake(at(27_400)));
    }

    #[test]
    fn only_what_should_have_been_acknowledged_is_overdue() {
        let (mut controller, start) = controller();
        let at = |ms| start + Duration::from_millis(ms);
        controller.lock().flight.acknowledge(at(600), at(0), 1000, RTT);
        controller.on_end_acks(at(600), 0, false, Some(9));
        assert!(!controller.lock().flight.is_overdue(at(60_000)), "nothing is in flight");
        controller.on_sent(at(60_000), 1000, 10);
        controller.on_sent(at(60_500), 1000, 11);
        assert!(!controller.lock().flight.is_overdue(at(60_700)));
        assert!(controller.lock().flight.is_overdue(at(60_800)));
        controller.on_end_acks(at(60_800), 1000, false, Some(10));
        assert!(!controller.lock().flight.is_overdue(at(61_000)), "acknowledgements come");
        assert!(controller.lock().flight.is_overdue(at(61_600)));
    }

    #[test]
    fn waking_a_connection_without_anything_in_flight_makes_no_burst() {
        let (mut controller, now) = controller();
        let window = controller.window();
        controller.on_sent(now, window, 9);
        controller.on_end_acks(now, 0, true, Some(9));
        assert!(controller.lock().flight.wake(now));
        assert_eq!(controller.window(), window);
    }

    #[test]
    fn large_packets_that_are_lost_while_small_ones_arrive_are_told_from_other_losses() {
        let (controller, start) = controller();
        let at = |ms| start + Duration::from_millis(ms);
        let flight = &mut controller.lock().flight;
        flight.acknowledge(at(600), at(0), 1443, RTT);
        // What follows them has arrived.
        flight.acknowledge(at(1000), at(400), 1443, RTT);
        assert!(!flight.is_narrow(at(300), 14_430));
        // One alone says nothing, and the next that arrives makes it forgotten.
        flight.acknowledge(at(1200), at(600), 50, RTT);
        assert!(!flight.is_narrow(at(500), 1443));
        flight.acknowledge(at(1300), at(700), 1443, RTT);
        flight.acknowledge(at(1500), at(900), 50, RTT);
        assert!(!flight.is_narrow(at(800), 1443));
        flight.acknowledge(at(1600), at(1000), 50, RTT);
        assert!(flight.is_narrow(at(950), 1443));
    }

    #[test]
    fn what_was_sent_before_packets_became_large_says_nothing_of_large_ones() {
        let (mut controller, start) = controller();
        let at = |ms| start + Duration::from_millis(ms);
        // The search for larger packets has found one that passes; it was sent before those that are lost.
        controller.on_mtu_update(1443);
        let flight = &mut controller.lock().flight;
        flight.acknowledge(at(600), at(0), 1443, RTT);
        flight.acknowledge(at(900), at(500), 1100, RTT);
        assert!(!flight.is_narrow(at(400), 12_000));
        flight.acknowledge(at(1400), at(800), 50, RTT);
        assert!(flight.is_narrow(at(700), 14_430));
    }

    #[test]
    fn losses_of_an_outage_are_no_congestion_and_later_ones_are() {
        let (mut controller, start) = controller();
        let window = controller.window();
        let after = |ms| start + Duration::from_millis(ms);
        assert!(controller.lock().flight.wake(after(30_000)));
        controller.lock().flight.acknowledge(after(31_100), after(30_500), 1000, RTT);
        controller.on_end_acks(after(31_000), 10_000, false, Some(70));
        controller.on_congestion_event(after(31_000), after(30_400), true, 9000);
        assert_eq!(controller.window(), window);
        // A batch that has both causes is not persistent congestion, which would leave two packets.
        controller.on_congestion_event(after(31_500), after(30_900), true, 1000);
        assert_eq!(controller.window(), window / 2);
        controller.on_congestion_event(after(41_000), after(40_000), true, 1000);
        assert_eq!(controller.window(), 2400);
    }
}

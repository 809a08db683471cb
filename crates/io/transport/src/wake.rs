//! Wakes a QUIC connection that an outage has put to sleep. With a window full of packets that nobody acknowledges QUIC sends
//! nothing new, and probes at doubled intervals (RFC 9002 §6.2.1): after a cut of a minute, another may pass before it tries
//! again. Whoever knows better, since the peer was just heard or must be asked whether it is there, has the window leave room
//! beside what is in flight, as for QUIC's own probes (RFC 9002 §7.5); the first acknowledgement then shows what was lost,
//! and all of it is sent again at once. It must not decide when: HTOTP's session does.
//!
//! Where large packets are what the path does not take, what is sent on waking is lost like all before it, and QUIC's probes,
//! which would be small, wait for the end of their pause, begun anew by each packet. So whoever wakes with packets in flight
//! that were due to be acknowledged also has the socket send in halves for a while (`socket/fec/halving.rs`).

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quinn::Connection;
use quinn::congestion::{Controller, ControllerFactory};

use crate::socket::fec::Halving;

type RttEstimator = quinn_proto::RttEstimator;
type Factory = Arc<dyn ControllerFactory + Send + Sync + 'static>;

/// A factory whose controllers can be woken.
pub(crate) fn wakeable(controllers: Factory) -> Factory {
    Arc::new(Wakeable(controllers))
}

/// What `connection` has in flight holds up nothing that is sent until the next acknowledgement, and the loss of it is no
/// sign of congestion. False when it is not asleep, or was woken a moment ago.
pub(crate) fn wake(connection: &Connection, now: Instant) -> bool {
    let Ok(controller) = connection.congestion_state().into_any().downcast::<Woken>() else { return false };
    let (is_woken, halving, rtt) = {
        let mut flight = controller.lock();
        let halving = flight.is_overdue(now).then(|| flight.halving.clone()).flatten();
        (flight.wake(now), halving, flight.rtt)
    };
    if let Some(halving) = halving.filter(|_| is_woken) {
        // Without the lock: the connection asks its controller under one of its own.
        let mtu = connection.stats().path.current_mtu;
        halving.begin(now, connection.remote_address(), rtt, mtu);
    }
    is_woken
}

/// What is sent on `connection` goes in halves by way of `halving` when it needs to.
pub(crate) fn halve_through(connection: &Connection, halving: &Arc<Halving>) {
    if let Ok(controller) = connection.congestion_state().into_any().downcast::<Woken>() {
        controller.lock().halving = Some(Arc::clone(halving));
    }
}

/// The controller of `connection`, as its factory built it; a copy.
pub(crate) fn controller(connection: &Connection) -> Option<Box<dyn Controller>> {
    let woken = connection.congestion_state().into_any().downcast::<Woken>().ok()?;
    Some(woken.controller)
}

struct Wakeable(Factory);

impl ControllerFactory for Wakeable {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let controller = Arc::clone(&self.0).build(now, current_mtu);
        Box::new(Woken { controller, flight: Arc::default() })
    }
}

/// A controller and what of its flight counts. Clones share the latter: that is how it is reached from outside.
struct Woken {
    controller: Box<dyn Controller>,
    flight: Arc<Mutex<Flight>>,
}

/// What is in flight, in bytes as QUIC counts them.
#[derive(Debug, Default)]
struct Flight {
    /// All, as far as is known without the packets that were given up by time alone.
    bytes: u64,
    /// Of these, what holds up nothing.
    passed_over: u64,
    /// When it was last woken, and when something was last acknowledged.
    woken: Option<Instant>,
    acknowledged: Option<Instant>,
    /// Woken, and nothing acknowledged since.
    asleep: bool,
    /// When the packet was sent whose acknowledgement ended an outage: those before it were lost in that.
    crossed: Option<Instant>,
    /// Since when something has been in flight and nothing was acknowledged.
    waiting: Option<Instant>,
    rtt: Duration,
    halving: Option<Arc<Halving>>,
}

impl Flight {
    /// When the acknowledgement should be here of what was sent at that time.
    fn due(&self, sent: Instant) -> Instant {
        sent + self.rtt * 5 / 4
    }

    /// Something that was sent should have been acknowledged.
    fn is_overdue(&self, now: Instant) -> bool {
        self.waiting.is_some_and(|since| now >= self.due(since))
    }

    fn send(&mut self, now: Instant, bytes: u64) {
        self.bytes += bytes;
        self.waiting.get_or_insert(now);
    }

    /// Passes over what is in flight, unless acknowledgements come, or those of what followed the last waking still may.
    fn wake(&mut self, now: Instant) -> bool {
        let is_due = |at: Option<Instant>| at.is_none_or(|at| now >= self.due(at));
        if !is_due(self.acknowledged) || !is_due(self.woken) {
            return false;
        }
        (self.passed_over, self.woken, self.asleep) = (self.bytes, Some(now), true);
        true
    }

    /// A packet that was sent at `sent` is acknowledged, with the round trip as QUIC has it. An acknowledgement that waited
    /// for the end of an outage makes that many times too long for a while.
    fn acknowledge(&mut self, now: Instant, sent: Instant, rtt: Duration) {
        self.rtt = rtt.min(now.saturating_duration_since(sent));
        if self.asleep {
            self.crossed = self.crossed.max(Some(sent));
        }
    }

    /// All acknowledgements of a batch have been told.
    fn settle(&mut self, now: Instant, in_flight: u64) {
        (self.bytes, self.passed_over, self.asleep, self.acknowledged) = (in_flight, 0, false, Some(now));
        self.waiting = (in_flight > 0).then_some(now);
    }

    /// Whether packets, the last of which was sent at `sent`, were lost in an outage: all of them, or some.
    fn lose(&mut self, sent: Instant, bytes: u64) -> (bool, bool) {
        self.bytes = self.bytes.saturating_sub(bytes);
        match self.crossed {
            Some(crossed) if sent <= crossed => (true, true),
            crossed => {
                self.crossed = None;
                (false, crossed.is_some())
            }
        }
    }
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for Woken {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.lock().send(now, bytes);
        self.controller.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.lock().acknowledge(now, sent, rtt.get());
        self.controller.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.lock().settle(now, in_flight);
        self.controller.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (all, some) = self.lock().lose(sent, lost_bytes);
        if !all {
            // RFC 9002 §7.6 takes a long time in which all is lost for congestion; here it is known to be none.
            let persistent = is_persistent_congestion && !some;
            self.controller.on_congestion_event(now, sent, persistent, lost_bytes);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.controller.window().saturating_add(self.lock().passed_over)
    }

    fn metrics(&self) -> quinn_proto::congestion::ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Woken { controller: self.controller.clone_box(), flight: Arc::clone(&self.flight) })
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
        assert!(controller.lock().wake(now));
        assert_eq!(controller.window(), 2 * window);
        controller.on_end_acks(now, window, false, Some(10));
        assert_eq!(controller.window(), window);
    }

    #[test]
    fn what_is_not_asleep_is_not_woken_nor_twice_within_a_round_trip() {
        let (mut controller, now) = controller();
        controller.on_sent(now, 1000, 9);
        controller.lock().acknowledge(now, now - RTT, RTT);
        controller.on_end_acks(now, 1000, false, Some(9));
        assert!(!controller.lock().wake(now + RTT));
        assert!(controller.lock().wake(now + 2 * RTT));
        assert!(!controller.lock().wake(now + 3 * RTT));
        assert!(controller.lock().wake(now + 4 * RTT));
    }

    #[test]
    fn what_was_acknowledged_late_does_not_make_a_waking_wait() {
        let (mut controller, start) = controller();
        let at = |ms| start + Duration::from_millis(ms);
        // Sent before an outage, and then after it, when QUIC has averaged the first in.
        controller.lock().acknowledge(at(26_000), at(0), RTT);
        controller.lock().acknowledge(at(26_600), at(26_000), RTT + Duration::from_millis(3200));
        controller.on_end_acks(at(26_600), 1000, false, Some(9));
        assert!(!controller.lock().wake(at(27_300)));
        assert!(controller.lock().wake(at(27_400)));
    }

    #[test]
    fn only_what_should_have_been_acknowledged_is_overdue() {
        let (mut controller, start) = controller();
        let at = |ms| start + Duration::from_millis(ms);
        controller.lock().acknowledge(at(600), at(0), RTT);
        controller.on_end_acks(at(600), 0, false, Some(9));
        assert!(!controller.lock().is_overdue(at(60_000)), "nothing is in flight");
        controller.on_sent(at(60_000), 1000, 10);
        controller.on_sent(at(60_500), 1000, 11);
        assert!(!controller.lock().is_overdue(at(60_700)));
        assert!(controller.lock().is_overdue(at(60_800)));
        controller.on_end_acks(at(60_800), 1000, false, Some(10));
        assert!(!controller.lock().is_overdue(at(61_000)), "acknowledgements come");
        assert!(controller.lock().is_overdue(at(61_600)));
    }

    #[test]
    fn waking_a_connection_without_anything_in_flight_makes_no_burst() {
        let (mut controller, now) = controller();
        let window = controller.window();
        controller.on_sent(now, window, 9);
        controller.on_end_acks(now, 0, true, Some(9));
        assert!(controller.lock().wake(now));
        assert_eq!(controller.window(), window);
    }

    #[test]
    fn losses_of_an_outage_are_no_congestion_and_later_ones_are() {
        let (mut controller, start) = controller();
        let window = controller.window();
        let after = |ms| start + Duration::from_millis(ms);
        assert!(controller.lock().wake(after(30_000)));
        controller.lock().acknowledge(after(31_100), after(30_500), RTT);
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

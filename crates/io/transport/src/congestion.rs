//! Puts the pure controllers of `core/congestion` behind quinn's trait, and gives them what earlier
//! connections measured. It must hold no policy: what to send when is decided in the core.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farhop_congestion::{Ack, Choice, Contract, Controller as Core, Loss, Phase, Resume, Saved, Sent};
use farhop_units::{BitRate, Bytes};
use quinn::Connection;
use quinn::congestion::{Controller, ControllerFactory};

use crate::ends::Ends;
use crate::memory::Recall;
use crate::surcharge::Surcharge;
use crate::wake;

/// The round-trip estimate as quinn hands it to controllers.
type RttEstimator = quinn_proto::RttEstimator;

/// The factory for one direction of one connection. [`Choice::Rate`] without a contract has no rate to
/// keep to: the path is measured then, and the log says so.
pub fn factory(
    choice: Choice,
    contract: Option<Contract>,
    recall: Recall,
) -> Arc<dyn ControllerFactory + Send + Sync + 'static> {
    let measured = Choice::for_rate(None);
    let choice = if choice.searches() || contract.is_some() {
        choice
    } else {
        tracing::warn!("congestion control '{choice}' needs the link's rate, using '{measured}'");
        measured
    };
    Arc::new(Factory {
        choice,
        contract,
        recall,
        is_first: AtomicBool::new(true),
        surcharge: Surcharge::default(),
        ends: Ends::default(),
    })
}

#[derive(Debug)]
struct Factory {
    choice: Choice,
    contract: Option<Contract>,
    recall: Recall,
    /// Nothing has been built yet.
    is_first: AtomicBool,
    surcharge: Surcharge,
    ends: Ends,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mtu = Bytes(current_mtu.into());
        let core = self.choice.build(self.contract, mtu).expect("`factory` chose one that can be built");
        // QUIC has another built when the connection's address changes: what was saved is another path's, and what will be
        // measured too (RFC 9959 §2.1).
        let is_first = self.is_first.swap(false, Ordering::Relaxed);
        let recall = if is_first { self.recall.clone() } else { Recall::nothing() };
        let steering = if self.choice.searches() {
            Steering::Searching(Box::new(Resume::new(core, mtu)))
        } else {
            Steering::Known(core)
        };
        Box::new(Adapter {
            choice: self.choice,
            steering,
            epoch: now,
            in_flight: 0,
            is_measured: false,
            recall,
            surcharge: self.surcharge.clone(),
            ends: self.ends.clone(),
            noted: None,
        })
    }
}

/// How a direction is driven at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Driven {
    /// By which controller.
    pub choice: Choice,
    /// Where Careful Resume stands.
    pub phase: Phase,
    /// Bytes that may be in flight.
    pub window: Bytes,
    /// Bytes that may be with the next packet: more than now where Careful Resume is about to jump.
    pub prospect: Bytes,
    /// The rate that QUIC's own bytes must not exceed, if the controller sets one: what goes out beside them is left room.
    pub pacing: Option<BitRate>,
    /// The window may double within the next round trip.
    pub is_searching: bool,
}

/// How what `connection` sends is driven.
pub fn driven(connection: &Connection) -> Option<Driven> {
    Some(adapter(connection)?.driven())
}

/// Where to say what goes out beside the bytes of `connection`.
pub(crate) fn surcharge(connection: &Connection) -> Surcharge {
    adapter(connection).map(|adapter| adapter.surcharge).unwrap_or_default()
}

/// Where to say what ends in the bytes that `connection` was given.
pub(crate) fn ends(connection: &Connection) -> Ends {
    adapter(connection).map(|adapter| adapter.ends).unwrap_or_default()
}

fn adapter(connection: &Connection) -> Option<Adapter> {
    wake::controller(connection)?.into_any().downcast().ok().map(|adapter| *adapter)
}

#[derive(Debug, Clone)]
enum Steering {
    /// The rate is known.
    Known(Box<dyn Core>),
    /// It is searched for, from what is saved if anything is.
    Searching(Box<Resume>),
}

/// A core controller whose clock starts when it is built.
#[derive(Debug, Clone)]
struct Adapter {
    choice: Choice,
    steering: Steering,
    epoch: Instant,
    /// Bytes in flight: exact after each acknowledgement, with what was sent since.
    in_flight: u64,
    /// Before the first acknowledgement quinn's smallest round trip is a guess.
    is_measured: bool,
    recall: Recall,
    surcharge: Surcharge,
    ends: Ends,
    noted: Option<Saved>,
}

impl Adapter {
    fn since_epoch(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.epoch)
    }

    fn core(&self) -> &dyn Core {
        match &self.steering {
            Steering::Known(core) => core.as_ref(),
            Steering::Searching(resume) => resume.as_ref(),
        }
    }

    fn core_mut(&mut self) -> &mut dyn Core {
        match &mut self.steering {
            Steering::Known(core) => core.as_mut(),
            Steering::Searching(resume) => resume.as_mut(),
        }
    }

    fn driven(&self) -> Driven {
        let core = self.core();
        let (phase, prospect) = match &self.steering {
            Steering::Known(_) => (Phase::Normal, core.window()),
            Steering::Searching(resume) => (resume.phase(), resume.prospect()),
        };
        Driven {
            choice: self.choice,
            phase,
            window: core.window(),
            prospect,
            pacing: core.pacing().map(|rate| self.surcharge.relieve(rate)),
            is_searching: core.is_searching(),
        }
    }

    /// Does something with the core, and with the memory of the path what follows from it.
    fn steer(&mut self, act: impl FnOnce(&mut dyn Core)) {
        let Steering::Searching(resume) = &mut self.steering else { return act(self.core_mut()) };
        if resume.awaits_offer()
            && let Some(saved) = self.recall.claim()
        {
            resume.offer(saved);
        }
        let (before, had_retreated) = (resume.phase(), resume.has_retreated());
        act(resume.as_mut());
        if resume.has_retreated() && !had_retreated {
            self.recall.forget();
            self.noted = None;
        }
        if resume.phase() == Phase::Normal && before != Phase::Normal {
            self.recall.release();
        }
        if let Some(observed) = resume.observed()
            && self.noted != Some(observed)
        {
            self.recall.note(observed);
            self.noted = Some(observed);
        }
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.in_flight += bytes;
        let sent = Sent { now: self.since_epoch(now), in_flight: Bytes(self.in_flight) };
        self.steer(|core| core.on_sent(&sent));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let ack = Ack {
            now: self.since_epoch(now),
            sent: self.since_epoch(sent),
            bytes: Bytes(bytes),
            in_flight: Bytes(self.in_flight),
            app_limited,
            min_rtt: self.is_measured.then(|| rtt.min()),
            rtt: rtt.get(),
        };
        self.steer(|core| core.on_ack(&ack));
    }

    fn on_end_acks(
        &mut self,
        _now: Instant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.in_flight = in_flight;
        self.is_measured = true;
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        let loss = Loss {
            now: self.since_epoch(now),
            sent: self.since_epoch(sent),
            bytes: Bytes(lost_bytes),
            persistent: is_persistent_congestion,
        };
        self.steer(|core| core.on_loss(&loss));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.core_mut().on_mtu(Bytes(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        self.core().window().0
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.core().initial_window().0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::PublicKey;
    use crate::memory::Memory;

    fn contract() -> Contract {
        Contract { rate: BitRate::mbit(8), rtt: Duration::from_millis(650) }
    }

    fn built(choice: Choice, contract: Option<Contract>) -> Box<dyn Controller> {
        factory(choice, contract, Recall::nothing()).build(Instant::now(), 1200)
    }

    fn driven(controller: &dyn Controller) -> Driven {
        controller.clone_box().into_any().downcast::<Adapter>().unwrap().driven()
    }

    #[test]
    fn a_contracted_direction_starts_with_its_bandwidth_delay_product() {
        let controller = built(Choice::Rate, Some(contract()));
        assert!(controller.window() > 600_000, "{}", controller.window());
        assert_eq!(controller.initial_window(), controller.window());
        assert_eq!(driven(&*controller).pacing, Some(BitRate::mbit(8)));
    }

    #[test]
    fn without_a_rate_the_start_is_cautious() {
        let controller = built(Choice::Rate, None);
        assert!(controller.window() < 20_000, "{}", controller.window());
        assert_eq!(driven(&*controller).choice, Choice::Bbr);
    }

    #[tokio::test]
    async fn what_is_saved_of_a_path_is_not_used_on_the_path_that_an_address_change_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path().join("paths")).unwrap();
        let recall = Recall::from(&memory);
        recall.identify(&PublicKey::from_bytes([1; 32]), [192, 0, 2, 1].into(), None);
        recall.note(Saved { capacity: Bytes(600_000), rtt: Duration::from_millis(650), full: None });
        let factory = factory(Choice::Bbr, None, recall);
        let known = || {
            let controller = Arc::clone(&factory).build(Instant::now(), 1200);
            let adapter = controller.into_any().downcast::<Adapter>().unwrap();
            let known = adapter.recall.claim().flatten();
            adapter.recall.release();
            known.is_some()
        };
        assert_eq!([known(), known(), known()], [true, false, false]);
    }

    #[test]
    fn each_controller_can_be_told_from_outside() {
        for choice in Choice::ALL {
            assert_eq!(driven(&*built(choice, Some(contract()))).choice, choice);
        }
    }
}

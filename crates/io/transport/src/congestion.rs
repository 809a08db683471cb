//! Puts the pure controllers of `core/congestion` behind quinn's trait, and names quinn's own.
//! It must hold no policy: what to send when is decided in the core.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farhop_congestion::{Ack, Capped, Choice, Contract, Controller as Core, Loss};
use farhop_units::Bytes;
use quinn::congestion::{Controller, ControllerFactory, CubicConfig, NewRenoConfig};

/// The round-trip estimate as quinn hands it to controllers.
type RttEstimator = quinn_proto::RttEstimator;

/// The factory for one direction. [`Choice::Capped`] without a contract has nothing to cap at and
/// falls back to CUBIC, saying so in the log.
pub fn factory(
    choice: Choice,
    contract: Option<Contract>,
) -> Arc<dyn ControllerFactory + Send + Sync + 'static> {
    match (choice, contract) {
        (Choice::Capped, Some(contract)) => Arc::new(CappedFactory(contract)),
        (Choice::Capped, None) => {
            tracing::warn!("congestion control 'capped' needs the link's rate, using 'cubic'");
            Arc::new(CubicConfig::default())
        }
        (Choice::Cubic, _) => Arc::new(CubicConfig::default()),
        (Choice::NewReno, _) => Arc::new(NewRenoConfig::default()),
    }
}

#[derive(Debug)]
struct CappedFactory(Contract);

impl ControllerFactory for CappedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let core = Capped::new(self.0, Bytes(current_mtu.into()));
        Box::new(Adapter { core, epoch: now })
    }
}

/// A core controller whose clock starts when it is built.
#[derive(Debug, Clone)]
struct Adapter<C> {
    core: C,
    epoch: Instant,
}

impl<C> Adapter<C> {
    fn since_epoch(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.epoch)
    }
}

impl<C: Core + Clone + 'static> Controller for Adapter<C> {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let ack = Ack {
            now: self.since_epoch(now),
            sent: self.since_epoch(sent),
            bytes: Bytes(bytes),
            app_limited,
            // Before the first sample this is the initial RTT, that is, the plan's.
            min_rtt: Some(rtt.min()),
            rtt: rtt.get(),
        };
        self.core.on_ack(&ack);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent) = (self.since_epoch(now), self.since_epoch(sent));
        self.core.on_loss(&Loss {
            now,
            sent,
            bytes: Bytes(lost_bytes),
            persistent: is_persistent_congestion,
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.core.on_mtu(Bytes(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        self.core.window().0
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.core.initial_window().0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::BitRate;

    #[test]
    fn a_contracted_direction_starts_with_its_bandwidth_delay_product() {
        let contract = Contract { rate: BitRate::mbit(8), rtt: Duration::from_millis(650) };
        let controller = factory(Choice::Capped, Some(contract)).build(Instant::now(), 1200);
        assert!(controller.window() > 600_000, "{}", controller.window());
        assert_eq!(controller.initial_window(), controller.window());
    }

    #[test]
    fn without_a_rate_there_is_no_cap_and_the_start_is_cautious() {
        let controller = factory(Choice::Capped, None).build(Instant::now(), 1200);
        assert!(controller.window() < 20_000, "{}", controller.window());
    }
}

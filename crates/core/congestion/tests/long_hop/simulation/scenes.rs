//! What a transport is for, as scenes: each gives how long it took and what it could have taken at best.

use std::time::Duration;

use farhop_congestion::{Choice, Contract, Controller, Resume, Saved};
use farhop_orbit::{Profile, Way};
use farhop_units::{BitRate, Bytes};

use super::{Object, PAYLOAD, Simulation};

pub(crate) const MTU: Bytes = Bytes(PAYLOAD);
/// 600 ms and 8 Mbit/s, as in the trials that the design rests on.
pub(crate) const RATE: BitRate = BitRate::mbit(8);
pub(crate) const RTT: Duration = Duration::from_millis(600);
/// Nobody waits longer.
pub(crate) const LONG: Duration = Duration::from_secs(400);

/// The link of a table's column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) queue_kb: u64,
    pub(crate) loss: f64,
}

impl Link {
    pub(crate) fn profile(self) -> Profile {
        let delay = RTT / 2;
        let mut profile = Profile::symmetric_delay("table", RATE, BitRate::kbit(512), delay);
        profile.forward.queue = Bytes(self.queue_kb * 1000);
        profile.with_loss(self.loss, 0.0)
    }
}

/// What a scene came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) took: Duration,
    pub(crate) limit: Duration,
    pub(crate) dropped: u64,
    pub(crate) queue_peak: Bytes,
}

impl Outcome {
    /// Over the limit by this factor.
    pub(crate) fn ratio(&self) -> f64 {
        self.took.as_secs_f64() / self.limit.as_secs_f64()
    }
}

/// The controller under test; the contract is known to `rate` alone, so that all others search.
pub(crate) fn controller(choice: Choice, saved: Option<Saved>) -> Box<dyn Controller> {
    let contract = (choice == Choice::Rate).then_some(Contract { rate: RATE, rtt: RTT });
    let inner = choice.build(contract, MTU).expect("a contract where one is needed");
    if !choice.searches() {
        return inner;
    }
    let mut resume = Resume::new(inner, MTU);
    resume.offer(saved);
    Box::new(resume)
}

/// What a connection driven by `choice` measures of the link, while nothing is lost at random.
pub(crate) fn measured(link: Link, choice: Choice) -> Option<Saved> {
    let mut simulation = Simulation::new(&Link { loss: 0.0, ..link }.profile(), 1);
    let flow = simulation.connect(controller(choice, None), RTT, &[bulk(20_000_000, at(0))]);
    simulation.run_until(LONG);
    simulation.controller(flow).observed()
}

/// Time of `bytes` on the link, headers included.
fn wire(bytes: u64) -> Duration {
    RATE.time_for(Bytes(bytes.div_ceil(PAYLOAD) * (PAYLOAD + 28)))
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn bulk(bytes: u64, at: Duration) -> Object {
    Object { bytes, urgent: false, at }
}

/// What a server's side of the handshake weighs, and when the client's answer comes to it, with the request.
const HANDSHAKE: Object = Object { bytes: 3_600, urgent: true, at: Duration::ZERO };
const REQUEST: Duration = Duration::from_millis(610);

/// Plays `objects` and measures the one at `index`; `limit` is for it alone.
fn play(
    link: Link,
    controller: Box<dyn Controller>,
    objects: &[Object],
    index: usize,
    limit: Duration,
) -> Outcome {
    let mut simulation = Simulation::new(&link.profile(), 1);
    let flow = simulation.connect(controller, RTT, objects);
    simulation.run_until(LONG);
    let counters = simulation.path().0.counters(Way::Forward);
    Outcome {
        took: simulation.took(flow, index).unwrap_or(LONG),
        limit,
        dropped: counters.queue_drops.packets,
        queue_peak: counters.queue_peak,
    }
}

/// A transfer on a fresh connection, its handshake included.
pub(crate) fn fresh(link: Link, choice: Choice, saved: Option<Saved>, bytes: u64) -> Outcome {
    let objects = [HANDSHAKE, bulk(bytes, REQUEST)];
    let mut outcome = play(link, controller(choice, saved), &objects, 1, 2 * RTT + wire(bytes));
    outcome.took += REQUEST;
    outcome
}

/// A transfer on a connection that has carried 20 MB, `pause` seconds ago.
pub(crate) fn warm(link: Link, choice: Choice, pause: u64, bytes: u64) -> Outcome {
    // The earlier transfer ends by itself; at 1 % loss the slowest controllers need their time.
    let mut simulation = Simulation::new(&link.profile(), 1);
    let earlier =
        simulation.connect(controller(choice, measured(link, choice)), RTT, &[bulk(20_000_000, at(0))]);
    simulation.run_until(LONG);
    let begin = simulation.took(earlier, 0).unwrap_or(LONG) + at(pause);
    simulation.path().0.take_counters(Way::Forward);
    simulation.ask(earlier, bulk(bytes, begin));
    simulation.run_until(begin + LONG);
    let counters = simulation.path().0.counters(Way::Forward);
    Outcome {
        took: simulation.took(earlier, 1).unwrap_or(LONG),
        limit: RTT + wire(bytes),
        dropped: counters.queue_drops.packets,
        queue_peak: counters.queue_peak,
    }
}

/// 5 KB of high priority asked for in the middle of a long transfer.
pub(crate) fn urgent(link: Link, choice: Choice) -> Outcome {
    let urgent = Object { bytes: 5_000, urgent: true, at: at(20) };
    let objects = [HANDSHAKE, bulk(40_000_000, REQUEST), urgent];
    play(link, controller(choice, measured(link, choice)), &objects, 2, RTT + wire(5_000))
}

/// Pages of 200 KB, one every three seconds, then 2 MB: what an application that sends little leaves.
pub(crate) fn after_small_pages(link: Link, choice: Choice) -> Outcome {
    let pages = (0..10).map(|page| bulk(200_000, REQUEST + at(3 * page)));
    let objects: Vec<Object> =
        [HANDSHAKE].into_iter().chain(pages).chain([bulk(2_000_000, at(40))]).collect();
    play(link, controller(choice, measured(link, choice)), &objects, 11, RTT + wire(2_000_000))
}

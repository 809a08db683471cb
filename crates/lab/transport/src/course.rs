//! The course of a run: link by link, weather by weather, workload by workload, routes in turn, round by round.

use farhop_compare::{Interrupt, Peers};
use farhop_orbit::Way;
use farhop_report::{
    Calibration, Cell, Condition, Leg, LinkResult, Named, Spread, Transports, WorkloadResult,
};
use farhop_testbed::Fitness;
use farhop_units::Bytes;

use crate::TransportError;
use crate::hop::{Hop, Load};
use crate::plan::{Plan, Weather};
use crate::ride::load_on;
use crate::route::{Kind, Route};
use crate::workload::Workload;

/// What a reader has to know of every number.
const METHOD: [&str; 8] = [
    "routes in turn, round by round; each load with its route's programs started anew, the files that they keep kept",
    "through Farhop the carrier is up and has brought 2 MB before; direct and transparent routes connect anew, as clients do",
    "each download on a connection of its own; every byte is compared",
    "time from the first request, or the connection's beginning where there is none, to the last byte",
    "limit = round trip + wire bytes ÷ rate; wire bytes are the fewest that any route took for the workload without loss",
    "loss both ways at random, the same seed in each run",
    "a load during which the link was late is repeated, three times at most, then marked late",
    "a load of more than 300 s has failed",
];

/// Carries a plan out; `progress` is told what is going on.
///
/// # Errors
/// No testbed can be had, or the user wants it to end. A load that fails is a result.
pub(crate) fn carry_out(
    plan: &Plan,
    peers: &Peers,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&str),
) -> Result<Transports, TransportError> {
    let named = |name: &str, words: &str| Named { name: name.into(), words: words.into() };
    let mut notes = Vec::new();
    for route in &plan.routes {
        notes.extend(lacks(route, peers).map(|lacks| format!("{}: not present: {lacks}", route.name)));
    }
    let mut links = Vec::new();
    for link in &plan.links {
        progress(&format!("bringing up the testbed on {}", link.name));
        let mut hop = Hop::over(interrupt, link.clone())?;
        if let Fitness::Unfit(reason) = hop.calibration.fitness() {
            notes.push(format!("{} was off by more than 2 % when it was measured: {reason}", link.name));
        }
        let link = over(&mut hop, plan, peers, progress)?;
        notes.extend(failures(&link));
        links.push(link);
    }
    Ok(Transports {
        workloads: plan.workloads.iter().map(|workload| named(workload.name, workload.words)).collect(),
        routes: plan.routes.iter().map(|route| named(route.name, route.words)).collect(),
        links,
        method: METHOD.map(str::to_owned).into(),
        notes,
    })
}

/// What went wrong, one line each, told once.
fn failures(link: &LinkResult) -> Vec<String> {
    let mut lines = Vec::new();
    for condition in &link.conditions {
        for result in &condition.results {
            for cell in &result.cells {
                let of = format!(
                    "{}, {}, {}, {}",
                    link.profile,
                    condition.in_words(),
                    result.workload,
                    cell.route
                );
                lines.extend(cell.failures.iter().map(|failure| format!("{of}: {failure}")));
            }
        }
    }
    lines.dedup();
    lines
}

/// What a route needs and this machine has not.
fn lacks(route: &Route, peers: &Peers) -> Option<String> {
    if let Kind::Peer(peer) = route.kind
        && peers.program(peer).is_none()
    {
        return Some(format!("say where the program is with --{}", route.name));
    }
    let lacking = farhop_testbed::require_congestion_control(route.controller()?);
    lacking.err().map(|error| error.to_string())
}

/// Everything over one link.
fn over(
    hop: &mut Hop<'_>,
    plan: &Plan,
    peers: &Peers,
    progress: &mut dyn FnMut(&str),
) -> Result<LinkResult, TransportError> {
    let link = hop.profile.clone();
    // Wire bytes by workload, as far as a load without loss has shown them.
    let mut fewest: Vec<Option<Bytes>> = vec![None; plan.workloads.len()];
    let mut gathered: Vec<(Weather, Vec<Vec<Cell>>)> = Vec::new();
    for weather in plan.weathers() {
        hop.queue(weather.queue_on(&link));
        hop.lose(weather.loss);
        let mut results = Vec::new();
        for (workload, fewest) in plan.workloads.iter().zip(&mut fewest) {
            let mut all: Vec<Loads> =
                plan.routes.iter().map(|route| Loads::new(lacks(route, peers).is_none())).collect();
            for round in 1..=plan.runs {
                for (route, loads) in plan.routes.iter().zip(&mut all).filter(|(_, loads)| loads.present) {
                    let outcome = load_on(hop, route, &workload.wanted(), peers);
                    hop.interrupt.check()?;
                    let said = match &outcome {
                        Ok(load) => format!("{:.2} s", time(workload, load).as_secs_f64()),
                        Err(error) => error.to_string(),
                    };
                    let conditions = Condition {
                        queue_bytes: hop.profile.forward.queue.0,
                        loss: weather.loss,
                        results: Vec::new(),
                    };
                    progress(&format!(
                        "{}, {}: {} {round}/{} {}: {said}",
                        link.name,
                        conditions.in_words(),
                        workload.name,
                        plan.runs,
                        route.name
                    ));
                    if let Ok(load) = &outcome
                        && weather.loss == 0.0
                    {
                        *fewest = Some(fewest.map_or(load.wire(), |known| known.min(load.wire())));
                    }
                    loads.add(outcome);
                }
            }
            results.push(
                plan.routes.iter().zip(&all).map(|(route, loads)| loads.cell(workload, route)).collect(),
            );
        }
        gathered.push((weather, results));
    }
    let conditions = gathered.into_iter().map(|(weather, results)| Condition {
        queue_bytes: weather.queue_on(&link).0,
        loss: weather.loss,
        results: plan
            .workloads
            .iter()
            .zip(&fewest)
            .zip(results)
            .map(|((workload, fewest), cells)| judged(hop, workload, *fewest, cells))
            .collect(),
    });
    let conditions = conditions.collect();
    let leg = |way| {
        let leg: &farhop_orbit::Leg = link.leg(way);
        Leg {
            rate_bit_s: leg.rate.map(|rate| rate.0),
            delay_s: leg.delay.as_secs_f64(),
            queue_bytes: leg.queue.0,
            loss: leg.loss_share(),
        }
    };
    let calibration = &hop.calibration;
    Ok(LinkResult {
        profile: link.name.clone(),
        rtt_s: link.rtt().as_secs_f64(),
        forward: leg(Way::Forward),
        return_: leg(Way::Return),
        calibration: Calibration {
            rtt_s: calibration.rtt.as_secs_f64(),
            forward_bit_s: calibration.forward.map(|check| check.measured.0),
            return_bit_s: calibration.return_.map(|check| check.measured.0),
            fit: calibration.fitness().is_fit(),
            text: calibration.to_string(),
        },
        conditions,
    })
}

/// How long what is timed took.
fn time(workload: &Workload, load: &Load) -> std::time::Duration {
    match workload.timed.and_then(|place| load.got.get(place)) {
        Some(got) => got.end.saturating_sub(got.start),
        None => load.time(),
    }
}

/// Loads of one workload on one route.
struct Loads {
    present: bool,
    counted: Vec<Load>,
    failures: Vec<String>,
}

impl Loads {
    fn new(present: bool) -> Loads {
        Loads { present, counted: Vec::new(), failures: Vec::new() }
    }

    fn add(&mut self, outcome: Result<Load, TransportError>) {
        match outcome {
            Ok(load) => self.counted.push(load),
            Err(error) => self.failures.push(error.to_string()),
        }
    }

    /// A load that was late counts only where none was on time.
    fn cell(&self, workload: &Workload, route: &Route) -> Cell {
        let on_time: Vec<&Load> = self.counted.iter().filter(|load| !load.late).collect();
        let late = on_time.is_empty() && !self.counted.is_empty();
        let loads: Vec<&Load> = if late { self.counted.iter().collect() } else { on_time };
        let median = |value: fn(&Load) -> u64| {
            Spread::of(loads.iter().map(|load| value(load) as f64)).map_or(0.0, |spread| spread.median)
        };
        Cell {
            route: route.name.into(),
            present: self.present,
            runs: loads.len() as u32,
            time_s: Spread::of(loads.iter().map(|load| time(workload, load).as_secs_f64())),
            ratio: None,
            forward_bytes: median(|load| load.record.forward.counters.sent.bytes.0),
            return_bytes: median(|load| load.record.return_.counters.sent.bytes.0),
            return_packets: median(|load| load.record.return_.counters.sent.packets),
            queue_drops: median(|load| load.record.forward.counters.queue_drops.packets),
            late,
            failures: self.failures.clone(),
        }
    }
}

/// Sets the cells of a workload against what the link allows.
fn judged(hop: &Hop<'_>, workload: &Workload, fewest: Option<Bytes>, cells: Vec<Cell>) -> WorkloadResult {
    let limit_bytes = fewest.map(|wire| Bytes((wire.0 as f64 * workload.timed_share()).round() as u64));
    let limit_s = limit_bytes.map(|wire| hop.limit(wire).as_secs_f64());
    let ratio = |cell: &Cell| Some(cell.time_s?.median / limit_s.filter(|limit| *limit > 0.0)?);
    WorkloadResult {
        workload: workload.name.into(),
        limit_s,
        limit_bytes: limit_bytes.map(|wire| wire.0),
        cells: cells.into_iter().map(|cell| Cell { ratio: ratio(&cell), ..cell }).collect(),
    }
}

//! 10 MB while one packet of a hundred gets lost: against the limit, and beside a direct download whose origin sends with BBR,
//! and downloads through what others made.

use farhop_lab_transport::{Hop, Load, Route, Via, bulk, load_on};

use super::{fewest, lateness, median, runs, warm, within};
use crate::group::Context;
use crate::row::Verdict;
use crate::{MeasureError, Row};

/// Loss both ways.
const LOSS: f64 = 0.01;
/// How many limits it may take.
const FACTOR: f64 = 1.15;
/// How many times faster than direct BBR it has to be on `geo-20m`.
const FASTER: f64 = 2.5;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let hop = warm(context, "geo-hylas2")?;
    let mut rows = vec![near_limit(&hop, &loads(context, &hop, false)?)];
    drop(hop);
    let mut hop = warm(context, "geo-20m")?;
    let beside = farhop_testbed::require_congestion_control("bbr");
    let all = loads(context, &hop, beside.is_ok())?;
    rows.push(near_limit(&hop, &all));
    let what = "10 MB, 1 % lost, geo-20m, faster than direct BBR";
    let bound = format!("≥ {FASTER} ×");
    rows.push(match beside {
        Ok(()) => faster(what, &all.direct, &all.farhop, bound, FASTER),
        Err(error) => Row::judged(what, error.to_string(), bound, false),
    });
    for (name, program) in [("pepsal", &context.peers.pepsal), ("qpep", &context.peers.qpep)] {
        let what = format!("10 MB, 1 % lost, geo-20m, faster than {name}");
        let bound = "≥ 1 ×".to_owned();
        rows.push(match (program, Route::named(name)) {
            (Some(_), Some(route)) => match through(context, &mut hop, route) {
                Ok(peer) => faster(&what, &peer, &all.farhop, bound, 1.0),
                // Whoever does not bring it is slower than whoever does.
                Err(error) if !error.is_interruption() => {
                    Row::judged(what, format!("it failed: {error}"), bound, !all.farhop.is_empty())
                }
                Err(error) => return Err(error),
            },
            // The bound is on peers that are measured.
            _ => {
                let measured = format!("not present: say where it is with --{name}");
                Row { what, measured, bound, verdict: Verdict::Told }
            }
        });
    }
    Ok(rows)
}

/// With loss, through what others made.
fn through(context: &Context, hop: &mut Hop<'_>, route: &Route) -> Result<Vec<Load>, MeasureError> {
    let wanted = [bulk("/10m")];
    (0..runs(context)).map(|_| Ok(load_on(hop, route, &wanted, &context.peers)?)).collect()
}

struct Loads {
    clean: Vec<Load>,
    farhop: Vec<Load>,
    direct: Vec<Load>,
}

/// Without loss, then with loss through Farhop and directly in turn.
fn loads(context: &Context, hop: &Hop<'_>, beside: bool) -> Result<Loads, MeasureError> {
    let wanted = [bulk("/10m")];
    let mut loads = Loads { clean: Vec::new(), farhop: Vec::new(), direct: Vec::new() };
    loads.clean.push(hop.load(Via::Farhop, &wanted)?);
    hop.lose(LOSS);
    for _ in 0..runs(context) {
        loads.farhop.push(hop.load(Via::Farhop, &wanted)?);
        if beside {
            loads.direct.push(hop.load(Via::Direct("bbr"), &wanted)?);
        }
    }
    Ok(loads)
}

fn near_limit(hop: &Hop<'_>, loads: &Loads) -> Row {
    let what = format!("10 MB, 1 % lost both ways, {}", hop.profile.name);
    within(what, &loads.farhop, hop.limit(fewest(&loads.clean)), FACTOR)
}

/// How many times faster than `others` the loads through Farhop were.
fn faster(what: &str, others: &[Load], farhop: &[Load], bound: String, least: f64) -> Row {
    let middle = |loads: &[Load]| median(&mut loads.iter().map(Load::time).collect::<Vec<_>>()).as_secs_f64();
    let (before, after) = (middle(others), middle(farhop));
    let ratio = before / after.max(1e-9);
    let late = if lateness(farhop).is_empty() { lateness(others) } else { lateness(farhop) };
    Row::judged(what, format!("{ratio:.2} × ({before:.2} s → {after:.2} s){late}"), bound, ratio >= least)
}

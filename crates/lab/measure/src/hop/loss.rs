//! 10 MB while one packet of a hundred gets lost: against the limit, and beside a direct download whose origin sends with BBR.

use farhop_lab_transport::{Hop, Load, Via, bulk};

use super::{fewest, lateness, median, runs, warm, within};
use crate::group::Context;
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
    let hop = warm(context, "geo-20m")?;
    let beside = farhop_testbed::require_congestion_control("bbr");
    let all = loads(context, &hop, beside.is_ok())?;
    rows.push(near_limit(&hop, &all));
    let what = "10 MB, 1 % lost, geo-20m, faster than direct BBR";
    let bound = format!("≥ {FASTER} ×");
    rows.push(match beside {
        Ok(()) => faster(what, &all, bound),
        Err(error) => Row::judged(what, error.to_string(), bound, false),
    });
    rows.push(Row::judged(
        "10 MB, 1 % lost, geo-20m, faster than PEPsal and QPEP",
        "not measured: their binaries cannot be given yet",
        "faster than each",
        false,
    ));
    Ok(rows)
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

fn faster(what: &str, loads: &Loads, bound: String) -> Row {
    let middle = |loads: &[Load]| median(&mut loads.iter().map(Load::time).collect::<Vec<_>>()).as_secs_f64();
    let (farhop, direct) = (middle(&loads.farhop), middle(&loads.direct));
    let ratio = direct / farhop.max(1e-9);
    let late =
        if lateness(&loads.farhop).is_empty() { lateness(&loads.direct) } else { lateness(&loads.farhop) };
    Row::judged(what, format!("{ratio:.2} × ({direct:.2} s → {farhop:.2} s){late}"), bound, ratio >= FASTER)
}

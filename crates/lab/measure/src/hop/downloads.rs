//! Downloads on a warm carrier over `geo-hylas2`: one large body, two hundred small ones, these under loss as well, something
//! urgent beside something large, and what all that takes of the return link.

use std::time::Duration;

use farhop_lab_transport::{Hop, Load, SMALL, Via, Wanted, beside_bulk, bulk, small};

use super::{fewest, lateness, median, runs, warm, within};
use crate::group::Context;
use crate::{MeasureError, Row};

/// Loss both ways, and how many limits two hundred small objects may take under it.
const LOSSES: [(f64, f64); 2] = [(0.01, 1.15), (0.03, 1.30)];
/// What something urgent may wait for beyond the round trip.
const URGENT: Duration = Duration::from_millis(150);
/// Bytes on the return link of a download, as a share of those on the forward link.
const RETURN: f64 = 0.01;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let hop = warm(context, "geo-hylas2")?;
    let times = |wanted: &[Wanted]| -> Result<Vec<Load>, MeasureError> {
        (0..runs(context)).map(|_| Ok(hop.load(Via::Farhop, wanted)?)).collect()
    };
    let large = times(&[bulk("/2m")])?;
    let many = times(&small())?;
    let (large_limit, many_limit) = (hop.limit(fewest(&large)), hop.limit(fewest(&many)));
    let urgent = times(&beside_bulk())?;
    let mut rows = vec![
        within("2 MB, warm", &large, large_limit, 1.05),
        within(format!("{} × 5 KB, warm", SMALL.0), &many, many_limit, 1.10),
    ];
    for (share, factor) in LOSSES {
        hop.lose(share);
        let lossy = times(&small())?;
        let what = format!("{} × 5 KB, {} % lost both ways", SMALL.0, share * 100.0);
        rows.push(within(what, &lossy, many_limit, factor));
    }
    rows.push(soon(&hop, &urgent));
    rows.push(returned(&large));
    Ok(rows)
}

fn soon(hop: &Hop<'_>, loads: &[Load]) -> Row {
    let mut times: Vec<_> =
        loads.iter().filter_map(|load| load.got.get(1)).map(|got| got.end - got.start).collect();
    let middle = median(&mut times);
    let bound = hop.profile.rtt() + URGENT;
    let measured = format!("{:.0} ms{}", middle.as_secs_f64() * 1e3, lateness(loads));
    let bound_text = format!("≤ RTT + 150 ms = {} ms", bound.as_millis());
    Row::judged("5 KB of high priority during bulk", measured, bound_text, middle <= bound)
}

fn returned(loads: &[Load]) -> Row {
    let share = |load: &Load| {
        let (forward, back) = (load.record.forward.counters.sent, load.record.return_.counters.sent);
        (back.bytes.0 as f64 / forward.bytes.0.max(1) as f64, back)
    };
    let mut shares: Vec<_> = loads.iter().map(share).collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (middle, back) = shares.get(shares.len() / 2).copied().unwrap_or((f64::INFINITY, Default::default()));
    let measured = format!(
        "{:.2} % ({} bytes, {} packets){}",
        middle * 100.0,
        back.bytes.0,
        back.packets,
        lateness(loads)
    );
    Row::judged("return link of a 2 MB download", measured, "≤ 1 % of forward bytes", middle <= RETURN)
}

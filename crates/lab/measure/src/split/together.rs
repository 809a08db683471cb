//! Five thousand flows that are open at the same time, over one carrier of each kind: what each end takes for them.

use std::net::Ipv4Addr;

use farhop_testbed::Place;
use farhop_units::Bytes;

use super::{Scene, fewer, flows};
use crate::group::Context;
use crate::{MeasureError, Row};

/// How many flows; the environment may ask for fewer.
const FLOWS: u64 = 5000;
const FEWER: &str = "FARHOP_FLOWS";
/// What an end may take, all of it.
const MEMORY: Bytes = Bytes(400_000_000);
/// Addresses of clients beside the testbed's own: nobody may have more connections than `connections_per_client`.
const CLIENTS: u8 = 4;

pub(super) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let count = fewer(FEWER, FLOWS);
    let scene = Scene::up()?;
    let clients: Vec<Ipv4Addr> = (0..CLIENTS)
        .map(|number| {
            let [a, b, c, _] = scene.testbed.addresses.client.octets();
            Ipv4Addr::new(a, b, c, 100 + number)
        })
        .collect();
    let lines: Vec<String> = clients.iter().map(|client| format!("addr add {client}/24 dev lan0")).collect();
    scene.testbed.namespace(Place::Client).ip(&lines).map_err(farhop_testbed::Error::from)?;
    let mut rows = Vec::new();
    for carrier in ["quic", "tcp"] {
        eprintln!("{count} flows at a time over {carrier}");
        let mut ends = scene.ends(context, carrier)?;
        let before = ends.memory();
        let to = scene.server(0);
        let opened = scene.as_clients(async || flows::together(&clients, to, count as usize, || ()).await)?;
        context.interrupt.check()?;
        ends.check_alive()?;
        let peaks = ends.peak_memory();
        for (end, (before, peak)) in ["remote", "ground"].into_iter().zip(before.into_iter().zip(peaks)) {
            let failed = opened.as_ref().err().map(ToString::to_string);
            rows.push(judged(end, carrier, count, [before, peak].map(Option::unwrap_or_default), failed));
        }
    }
    Ok(rows)
}

fn judged(end: &str, carrier: &str, count: u64, [before, peak]: [Bytes; 2], failed: Option<String>) -> Row {
    let is_whole = failed.is_none() && count >= FLOWS;
    let each = peak.0.saturating_sub(before.0) / count.max(1);
    let shown = format!(
        "{:.0} MB of {count} flows, {:.0} KB each, every byte right",
        peak.0 as f64 / 1e6,
        each as f64 / 1e3
    );
    Row::judged(
        format!("memory of {FLOWS} concurrent split flows, {carrier}, {end}"),
        failed.map_or(shown, |error| format!("of {count} flows: {error}")),
        format!("< {} MB", MEMORY.0 / 1_000_000),
        is_whole && (1..MEMORY.0).contains(&peak.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn what_is_fewer_or_larger_or_fails_does_not_pass() {
        let verdict = |count, peak, failed: Option<&str>| {
            judged("ground", "quic", count, [Bytes(1), Bytes(peak)], failed.map(str::to_owned)).verdict
        };
        assert_eq!(verdict(5000, 399_000_000, None), Verdict::Pass);
        for (count, peak, failed) in
            [(4999, 1_000, None), (5000, 400_000_000, None), (5000, 0, None), (5000, 1_000, Some("reset"))]
        {
            assert_eq!(verdict(count, peak, failed), Verdict::Miss, "{count} {peak} {failed:?}");
        }
    }
}

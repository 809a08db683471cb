//! Many loads summed up as one variant's result. Pure.

use farhop_report::{Spread, VariantResult, Ways};

use crate::Variant;
use crate::load::Measured;

/// Sums up the loads of a variant that count, and what was wrong in those that did not.
pub(crate) fn summarise(variant: Variant, loads: &[Measured], bad_elsewhere: u64) -> VariantResult {
    let spread = |value: fn(&Measured) -> Option<f64>| Spread::of(loads.iter().filter_map(value));
    let median = |value: &dyn Fn(&Measured) -> u64| {
        Spread::of(loads.iter().map(|load| value(load) as f64)).map_or(0.0, |spread| spread.median)
    };
    let ways = |value: fn(&Measured) -> [u64; 2]| Ways {
        forward: median(&|load| value(load)[0]),
        return_: median(&|load| value(load)[1]),
    };
    VariantResult {
        name: variant.name().into(),
        runs: loads.len() as u32,
        plt_s: spread(|load| load.plt_s),
        fcp_s: spread(|load| load.fcp_s),
        ttfb_s: spread(|load| load.ttfb_s),
        connections: median(&|load| load.connections),
        link_bytes: ways(|load| load.bytes),
        link_packets: ways(|load| load.packets),
        requests_crossed: median(&|load| load.counters.requests_crossed),
        promised: median(&|load| load.counters.promised),
        used: median(&|load| load.counters.used),
        wasted_bytes: median(&|load| load.counters.wasted_bytes),
        resources_ok: loads.iter().map(|load| load.checked.ok).min().unwrap_or(0),
        resources_bad: loads
            .iter()
            .map(|load| load.checked.bad.len() as u64)
            .max()
            .unwrap_or(0)
            .max(bad_elsewhere),
        last_s: spread(|load| load.last_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checked;
    use crate::ends::Counters;
    use crate::settle::Seen;
    use farhop_testbed::Fitness;

    fn load(plt_s: f64, ok: u64, bad: usize) -> Measured {
        Measured {
            plt_s: Some(plt_s),
            fcp_s: None,
            ttfb_s: Some(0.7),
            last_s: Some(plt_s + 0.1),
            connections: 6,
            bytes: [(plt_s * 1000.0) as u64, 10],
            packets: [3, 2],
            counters: Counters { requests_crossed: 1, promised: 30, used: 29, ..Counters::default() },
            checked: Checked { ok, bad: vec!["wrong".into(); bad], used: Vec::new() },
            seen: Seen::default(),
            fitness: Fitness::Fit,
            browser: None,
            errors: Vec::new(),
        }
    }

    #[test]
    fn times_are_spread_counts_are_medians_and_resources_the_worst() {
        let loads = [load(3.0, 31, 0), load(1.0, 30, 1), load(2.0, 31, 0)];
        let result = summarise(Variant::Farhop, &loads, 0);
        assert_eq!(result.plt_s, Spread::of([1.0, 2.0, 3.0]));
        assert_eq!(result.fcp_s, None);
        assert_eq!((result.runs, result.promised, result.used), (3, 30.0, 29.0));
        assert_eq!(result.link_bytes, Ways { forward: 2000.0, return_: 10.0 });
        assert_eq!((result.resources_ok, result.resources_bad), (30, 1));
    }

    #[test]
    fn wrong_resources_of_loads_left_out_are_not_hidden() {
        assert_eq!(summarise(Variant::Farhop, &[load(1.0, 31, 0)], 4).resources_bad, 4);
        assert_eq!(summarise(Variant::Farhop, &[], 4).runs, 0);
    }
}

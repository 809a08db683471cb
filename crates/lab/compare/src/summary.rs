//! Many loads summed up as one variant's result. Pure.

use farhop_report::{Limit, Spread, VariantResult, Ways};

use crate::Variant;
use crate::load::Measured;

/// What was gathered about one page and one variant.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The loads that count.
    pub(crate) counted: Vec<Measured>,
    /// The least late of those that do not: better than nothing, and marked as such, when none counts.
    pub(crate) stand_in: Option<Measured>,
    /// Resources that were wrong in loads that do not count.
    pub(crate) bad_elsewhere: u64,
}

impl Gathered {
    /// Takes in a load that is not fit.
    pub(crate) fn unfit(&mut self, load: Measured) {
        let known = self.stand_in.as_ref().and_then(|known| known.lateness);
        // Without a load event, or over a link that broke, there is nothing to indicate.
        if let (Some(lateness), Some(_)) = (load.lateness, load.plt_s)
            && known.is_none_or(|known| lateness < known)
        {
            self.stand_in = Some(load);
        }
    }

    /// The loads that stand for the variant.
    pub(crate) fn loads(&self) -> &[Measured] {
        if self.counted.is_empty() { self.stand_in.as_slice() } else { &self.counted }
    }
}

/// The load whose load time is the middle one; of two, the quicker.
fn middle(loads: &[Measured]) -> Option<&Measured> {
    let mut loads: Vec<&Measured> = loads.iter().collect();
    let plt = |load: &Measured| load.plt_s.unwrap_or(f64::INFINITY);
    loads.sort_by(|one, other| plt(one).total_cmp(&plt(other)));
    loads.get(loads.len().saturating_sub(1) / 2).copied()
}

/// Sums up what was gathered about a variant; `limit` is what it could reach, over a link of this forward rate in bit/s.
pub(crate) fn summarise(
    variant: Variant,
    gathered: &Gathered,
    limit: &Limit,
    rate: Option<u64>,
) -> VariantResult {
    let loads = gathered.loads();
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
            .max(gathered.bad_elsewhere),
        limit_s: limit.seconds(rate),
        limit_bytes: limit.bytes,
        present: variant.lacks().is_none(),
        unfit: gathered.counted.is_empty() && !loads.is_empty(),
        accounts: loads.iter().filter_map(|load| load.accounts.clone()).collect(),
        last_s: spread(|load| load.last_s),
        waterfall: middle(loads).map(|load| load.waterfall.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_testbed::Fitness;
    use std::time::Duration;

    fn gathered(counted: Vec<Measured>, bad_elsewhere: u64) -> Gathered {
        Gathered { counted, bad_elsewhere, stand_in: None }
    }

    fn sum(gathered: &Gathered) -> VariantResult {
        let limit = Limit { browser_s: Some(0.5), rtt_s: 0.6, origin_s: 0.0, bytes: 1_000_000 };
        summarise(Variant::Farhop, gathered, &limit, Some(8_000_000))
    }

    #[test]
    fn times_are_spread_counts_are_medians_and_resources_the_worst() {
        let result = sum(&gathered(
            vec![Measured::sample(3.0, 31, 0), Measured::sample(1.0, 30, 1), Measured::sample(2.0, 31, 0)],
            0,
        ));
        assert_eq!(result.plt_s, Spread::of([1.0, 2.0, 3.0]));
        assert_eq!(result.fcp_s, None);
        assert_eq!((result.runs, result.promised, result.used), (3, 30.0, 29.0));
        assert_eq!(result.link_bytes, Ways { forward: 2000.0, return_: 10.0 });
        assert_eq!((result.resources_ok, result.resources_bad), (30, 1));
        assert_eq!((result.limit_s, result.limit_bytes), (Some(2.1), 1_000_000));
        assert_eq!(result.waterfall.load_s, Some(2.0), "the load in the middle is drawn");
    }

    #[test]
    fn wrong_resources_of_loads_left_out_are_not_hidden() {
        assert_eq!(sum(&gathered(vec![Measured::sample(1.0, 31, 0)], 4)).resources_bad, 4);
        assert_eq!(sum(&gathered(Vec::new(), 4)).runs, 0);
    }

    #[test]
    fn the_least_late_load_stands_in_where_none_is_fit_and_only_there() {
        let late = |plt_s, millis| Measured {
            lateness: Some(Duration::from_millis(millis)),
            fitness: Fitness::Unfit("late".into()),
            ..Measured::sample(plt_s, 31, 0)
        };
        let mut gathered = gathered(Vec::new(), 0);
        gathered.unfit(late(3.0, 5));
        gathered.unfit(late(2.0, 2));
        gathered.unfit(Measured { plt_s: None, ..late(1.0, 1) });
        gathered.unfit(Measured { lateness: None, ..late(1.0, 1) });
        gathered.unfit(late(4.0, 9));
        let result = sum(&gathered);
        assert_eq!((result.unfit, result.runs, result.plt_s), (true, 1, Spread::of([2.0])));
        gathered.counted.push(Measured::sample(7.0, 31, 0));
        let result = sum(&gathered);
        assert_eq!((result.unfit, result.runs, result.plt_s), (false, 1, Spread::of([7.0])));
    }
}

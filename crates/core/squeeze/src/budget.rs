//! How much processor time making bodies small may take: a token bucket. Pure: the time, and what work has cost, are
//! passed in.

use std::time::Duration;

/// How much of the budget is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Load {
    /// Enough for the best settings.
    Light,
    /// Enough for cheap settings.
    Heavy,
    /// None.
    Spent,
}

/// Seconds of its share that the budget holds when nothing was done for long: a page is a burst, and between pages
/// there is time.
const BURST_S: f64 = 10.0;

/// Below this part of a full budget, work is done cheaply.
const CHEAP_BELOW: f64 = 0.4;

/// See the module.
#[derive(Debug, Clone)]
pub struct CpuBudget {
    /// Parts of one core: 0.5 is half of it.
    share: f64,
    /// Seconds of processor time; below zero when more was used than there was.
    left: f64,
    updated: Duration,
}

impl CpuBudget {
    /// A full budget at `now`, which refills at `share` of one core (0.5: half a second each second).
    pub fn new(share: f64, now: Duration) -> Self {
        let share = share.max(0.0);
        CpuBudget { share, left: share * BURST_S, updated: now }
    }

    /// Changes the share; what was used before stays used.
    pub fn set_share(&mut self, share: f64, now: Duration) {
        self.refill(now);
        let share = share.max(0.0);
        let spent = self.share * BURST_S - self.left;
        (self.share, self.left) = (share, share * BURST_S - spent);
    }

    /// How hard the budget is pressed at `now`, a time since the same start as before.
    pub fn load(&mut self, now: Duration) -> Load {
        self.load_after(Duration::ZERO, now)
    }

    /// The same once work that is under way and will cost `reserved` is charged.
    pub fn load_after(&mut self, reserved: Duration, now: Duration) -> Load {
        self.refill(now);
        let full = self.share * BURST_S;
        let left = self.left - reserved.as_secs_f64();
        if left <= 0.0 {
            Load::Spent
        } else if left < full * CHEAP_BELOW {
            Load::Heavy
        } else {
            Load::Light
        }
    }

    /// The part of a full budget that is used up at `now`: 0 when nothing was done for long, 1 or more when none is left.
    pub fn used(&mut self, now: Duration) -> f64 {
        self.refill(now);
        let full = self.share * BURST_S;
        if full > 0.0 { 1.0 - self.left / full } else { 0.0 }
    }

    /// Work that began when the budget allowed it has cost `cost`.
    pub fn charge(&mut self, cost: Duration, now: Duration) {
        self.refill(now);
        self.left -= cost.as_secs_f64();
    }

    fn refill(&mut self, now: Duration) {
        // The clock of another thread may be read a little earlier and arrive a little later.
        let passed = now.saturating_sub(self.updated);
        self.updated = self.updated.max(now);
        self.left = (self.left + passed.as_secs_f64() * self.share).min(self.share * BURST_S);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn work_under_way_counts_before_it_is_charged() {
        let mut budget = CpuBudget::new(0.5, Duration::ZERO);
        let loads = [0, 2, 4, 5].map(|s| budget.load_after(Duration::from_secs(s), Duration::ZERO));
        assert_eq!(loads, [Load::Light, Load::Light, Load::Heavy, Load::Spent]);
        assert_eq!(budget.load(Duration::ZERO), Load::Light);
    }

    #[test]
    fn what_is_used_of_it_is_told_as_a_part_of_it() {
        let mut budget = CpuBudget::new(0.5, s(0.0));
        assert_eq!(budget.used(s(0.0)), 0.0);
        budget.charge(s(2.5), s(0.0));
        assert_eq!(budget.used(s(0.0)), 0.5);
        budget.charge(s(5.0), s(0.0));
        assert_eq!(budget.used(s(0.0)), 1.5);
        assert_eq!(budget.used(s(100.0)), 0.0);
        assert_eq!(CpuBudget::new(0.0, s(0.0)).used(s(0.0)), 0.0, "nothing is ever done");
    }

    #[test]
    fn work_gets_cheaper_then_stops_and_comes_back_with_time() {
        let mut budget = CpuBudget::new(0.5, s(0.0));
        assert_eq!(budget.load(s(0.0)), Load::Light);
        budget.charge(s(3.5), s(0.0));
        assert_eq!(budget.load(s(0.0)), Load::Heavy);
        budget.charge(s(2.0), s(0.0));
        assert_eq!(budget.load(s(0.0)), Load::Spent);
        assert_eq!(budget.load(s(0.9)), Load::Spent);
        assert_eq!(budget.load(s(1.2)), Load::Heavy);
        assert_eq!(budget.load(s(9.0)), Load::Light);
    }

    #[test]
    fn without_a_share_nothing_is_ever_done() {
        let mut budget = CpuBudget::new(0.0, s(0.0));
        assert_eq!(budget.load(s(1000.0)), Load::Spent);
    }

    #[test]
    fn a_new_share_does_not_forget_what_was_used() {
        let mut budget = CpuBudget::new(0.1, s(0.0));
        budget.charge(s(2.0), s(0.0));
        assert_eq!(budget.load(s(0.0)), Load::Spent);
        budget.set_share(1.0, s(0.0));
        assert_eq!(budget.load(s(0.0)), Load::Light);
        budget.set_share(0.1, s(0.0));
        assert_eq!(budget.load(s(0.0)), Load::Spent);
    }

    proptest! {
        #[test]
        fn over_any_time_no_more_is_used_than_share_and_burst_allow(share in 0.01f64..4.0, costs in proptest::collection::vec((0.0f64..0.2, 0.0f64..0.3), 1..300)) {
            let mut budget = CpuBudget::new(share, s(0.0));
            let (mut now, mut used, mut dearest) = (0.0, 0.0, 0.0f64);
            for (pause, cost) in costs {
                now += pause;
                if budget.load(s(now)) != Load::Spent {
                    budget.charge(s(cost), s(now));
                    used += cost;
                    dearest = dearest.max(cost);
                }
            }
            // Work is charged when it is done, so the last piece may go beyond.
            prop_assert!(used <= share * (now + BURST_S) + dearest + 1e-6);
        }
    }
}

//! From reports to a share of repairs: none while nothing is lost, then as much as the loss and its burstiness ask for.

use crate::encoder::WINDOW;
use crate::wire::Report;

/// Packets over which the estimate forgets: long enough that a loss of 1 % is seen as such, short enough to follow a shower.
const MEMORY: f64 = 2000.0;
/// Lossless packets that a fresh estimate is taken to have seen.
const PRIOR: f64 = 250.0;
/// Loss at which repairs begin: one packet in a thousand costs a page of 2 MB a round trip.
const BEGIN: f64 = 0.001;
/// Loss below which they end.
const END: f64 = 0.0002;
/// Standard deviations of the losses in a window that repairs make good, and in what a burst leaves uncovered at its end.
const MARGIN: f64 = 4.0;
const TAIL_MARGIN: f64 = 3.0;
/// Windows among which one may have a run of losses longer than what repairs make good.
const LONG_RUNS: f64 = 0.004;

/// What is believed of the path.
#[derive(Debug)]
pub struct Estimate {
    loss: f64,
    runs: f64,
    seen: f64,
    last: Report,
    active: bool,
}

impl Estimate {
    /// Nothing lost yet; `newest` is the number before the first packet's.
    pub fn new(newest: u32) -> Self {
        let last = Report { newest, ..Report::default() };
        Estimate { loss: 0.0, runs: 0.0, seen: 0.0, last, active: false }
    }

    /// Takes in a report on numbers up to `sent`; false for one that is old or speaks of packets never sent.
    pub fn update(&mut self, report: &Report, sent: u32) -> bool {
        let fresh = report.newest.wrapping_sub(self.last.newest);
        let outstanding = sent.wrapping_sub(self.last.newest);
        if fresh > outstanding || fresh == 0 {
            return false;
        }
        let packets = f64::from(fresh);
        let share = |new: u32, old: u32| (f64::from(new.wrapping_sub(old)) / packets).min(1.0);
        let (loss, runs) = (share(report.lost, self.last.lost), share(report.runs, self.last.runs));
        self.seen += packets;
        let weight = 1.0 - (-packets / (self.seen + PRIOR).min(MEMORY)).exp();
        self.loss += weight * (loss - self.loss);
        self.runs += weight * (runs - self.runs);
        self.last = *report;
        self.active = self.loss >= if self.active { END } else { BEGIN };
        true
    }

    /// Share of packets that the path loses.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// Mean length of a run of losses.
    fn run(&self) -> f64 {
        (self.loss / self.runs.max(1e-9)).clamp(1.0, 20.0)
    }

    /// Losses among `packets` that are as good as never exceeded, by the normal approximation. Their index of dispersion
    /// is 1 when they are independent, and 2 × run − 1 when runs are geometric, as of a Gilbert channel.
    fn bound(&self, packets: f64, margin: f64) -> f64 {
        let mean = packets * self.loss;
        mean + margin * (mean * (2.0 * self.run() - 1.0)).sqrt()
    }

    /// A run of losses as good as never exceeded in a window, where runs are few and their lengths decide: of λ runs of
    /// mean length L one is longer than x with probability λ e^(−x ÷ L).
    fn longest_run(&self) -> f64 {
        let runs = WINDOW as f64 * self.loss / self.run();
        self.run() * (runs / LONG_RUNS).max(1.0).ln()
    }

    /// Bytes of repair for each byte sent, at most `most`. Where more is lost than that could make good, none: it would
    /// only add to what overloads the path.
    pub fn share(&self, most: f64) -> f64 {
        if !self.active || self.loss > most {
            return 0.0;
        }
        let window = WINDOW as f64;
        (self.bound(window, MARGIN).max(self.longest_run()) / window).min(most)
    }

    /// Repairs that the last `packets` want to be covered by when nothing follows them.
    pub fn tail(&self, packets: usize) -> usize {
        if packets == 0 { 0 } else { self.bound(packets as f64, TAIL_MARGIN).ceil().max(1.0) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An estimate after reports each 500 packets, of so many lost in so many runs each.
    fn after(reports: &[(u32, u32)]) -> Estimate {
        let mut estimate = Estimate::new(0);
        let mut report = Report::default();
        for (lost, runs) in reports {
            report.newest += 500;
            report.lost += lost;
            report.runs += runs;
            estimate.update(&report, report.newest);
        }
        estimate
    }

    #[test]
    fn nothing_is_repaired_while_nothing_is_lost() {
        assert_eq!(after(&[(0, 0); 10]).share(0.25), 0.0);
    }

    #[test]
    fn the_share_follows_loss_and_bursts_within_its_bound() {
        let per_cent = |estimate: Estimate| (estimate.share(0.25) * 1000.0).round() / 10.0;
        let rows = [(5, 5), (15, 15), (25, 25), (5, 1), (15, 3), (100, 90)];
        let shares = rows.map(|row| per_cent(after(&[row; 40])));
        assert_eq!(shares, [4.5, 9.1, 12.9, 16.2, 21.4, 25.0]);
    }

    #[test]
    fn it_begins_at_once_and_ends_long_after_the_last_loss() {
        let mut reports = vec![(5, 5)];
        assert!(after(&reports).share(0.25) > 0.02);
        reports.extend([(0, 0); 10]);
        assert!(after(&reports).share(0.25) > 0.0, "a pause of 5000 packets");
        reports.extend([(0, 0); 20]);
        assert_eq!(after(&reports).share(0.25), 0.0);
    }

    #[test]
    fn an_overloaded_path_gets_no_repairs_on_top() {
        assert_eq!(after(&[(200, 150); 20]).share(0.25), 0.0);
    }

    #[test]
    fn the_end_of_a_burst_wants_more_the_longer_it_is() {
        let estimate = after(&[(5, 5); 40]);
        assert_eq!([0, 1, 4, 20, 100].map(|packets| estimate.tail(packets)), [0, 1, 1, 2, 4]);
    }

    #[test]
    fn reports_that_are_old_or_lie_change_nothing() {
        let mut estimate = after(&[(5, 5)]);
        let before = estimate.loss();
        let report = |newest, lost| Report { newest, lost, runs: 1, recovered: 0 };
        assert!(!estimate.update(&report(400, 400), 600) && !estimate.update(&report(601, 400), 600));
        assert_eq!(estimate.loss(), before);
        assert!(estimate.update(&report(600, u32::MAX), 600));
        assert!(estimate.loss() <= 1.0);
    }
}

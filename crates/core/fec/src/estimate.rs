//! From reports to a share of repairs: none while nothing is lost, then as much as the loss and its burstiness ask for.

use crate::encoder::WINDOW;
use crate::wire::Report;

/// Packets over which the estimate forgets: long enough that a loss of 1 % is seen as such, short enough to follow a shower.
const MEMORY: f64 = 2000.0;
/// Lossless packets that a fresh estimate is taken to have seen.
const PRIOR: f64 = 250.0;
/// Packets over which the quick estimate does.
const RECENTLY: f64 = 300.0;
/// Loss at which repairs begin: one packet in a thousand costs a page of 2 MB a round trip.
const BEGIN: f64 = 0.001;
/// Loss below which they end.
const END: f64 = 0.0002;
/// Standard deviations of the losses in a window that repairs make good, and in what a burst leaves uncovered at its end.
const MARGIN: f64 = 4.0;
const TAIL_MARGIN: f64 = 3.0;
/// Windows among which one may have a run of losses longer than what repairs make good.
const LONG_RUNS: f64 = 0.004;

/// Losses a packet, and runs of them, averaged over the last packets.
#[derive(Debug, Clone, Copy, Default)]
struct Average {
    loss: f64,
    runs: f64,
}

impl Average {
    /// Takes in a share of losses and of runs that counts `weight`.
    fn update(&mut self, loss: f64, runs: f64, weight: f64) {
        self.loss += weight * (loss - self.loss);
        self.runs += weight * (runs - self.runs);
    }

    /// Mean length of a run of losses.
    fn run(&self) -> f64 {
        (self.loss / self.runs.max(1e-9)).clamp(1.0, 20.0)
    }

    /// Index of dispersion of the number of losses: 1 when they are independent, and 2 × run − 1 when runs are geometric, as of
    /// a Gilbert channel.
    fn dispersion(&self) -> f64 {
        2.0 * self.run() - 1.0
    }

    /// Losses among `packets` that are as good as never exceeded, by the normal approximation.
    fn bound(&self, packets: f64, margin: f64) -> f64 {
        let mean = packets * self.loss;
        mean + margin * (mean * self.dispersion()).sqrt()
    }

    /// A run of losses as good as never exceeded in a window, where runs are few and their lengths decide: of λ runs of
    /// mean length L one is longer than x with probability λ e^(−x ÷ L).
    fn longest_run(&self) -> f64 {
        let runs = WINDOW as f64 * self.loss / self.run();
        self.run() * (runs / LONG_RUNS).max(1.0).ln()
    }
}

/// What is believed of the path.
#[derive(Debug)]
pub struct Estimate {
    long: Average,
    /// Of the last packets alone, so that a shower shows before it has passed.
    recent: Average,
    /// What is taken for true as far as nothing has been seen.
    supposed: f64,
    /// How far that is, 1 to 0.
    doubt: f64,
    seen: f64,
    last: Report,
    active: bool,
}

impl Estimate {
    /// Nothing lost yet; `newest` is the number before the first packet's.
    pub fn new(newest: u32) -> Self {
        Estimate {
            long: Average::default(),
            recent: Average::default(),
            supposed: 0.0,
            doubt: 1.0,
            seen: 0.0,
            last: Report { newest, ..Report::default() },
            active: false,
        }
    }

    /// Takes in a report on numbers up to `sent`; false for one that is old or speaks of packets never sent.
    pub fn update(&mut self, report: &Report, sent: u32) -> bool {
        if !self.is_news(report, sent) {
            return false;
        }
        let packets = f64::from(report.newest.wrapping_sub(self.last.newest));
        let share = |new: u32, old: u32| (f64::from(new.wrapping_sub(old)) / packets).min(1.0);
        let (loss, runs) = (share(report.lost, self.last.lost), share(report.runs, self.last.runs));
        self.seen += packets;
        let weight = |memory: f64| 1.0 - (-packets / memory).exp();
        let of_long = weight((self.seen + PRIOR).min(MEMORY));
        self.long.update(loss, runs, of_long);
        self.doubt *= 1.0 - of_long;
        self.recent.update(loss, runs, weight(RECENTLY));
        self.last = *report;
        self.judge();
        true
    }

    /// Whether a report tells of packets up to `sent` that none has told of before.
    pub fn is_news(&self, report: &Report, sent: u32) -> bool {
        let fresh = report.newest.wrapping_sub(self.last.newest);
        let outstanding = sent.wrapping_sub(self.last.newest);
        fresh > 0 && fresh <= outstanding
    }

    /// Learns nothing from a report: what it tells of met a queue of this end's own.
    pub fn pass_over(&mut self, report: &Report) {
        self.last = *report;
    }

    /// Has `loss` taken for true as far as nothing has been seen: what the other direction loses, which often crosses the same
    /// weather. Who has sent little, requests alone, could not learn it in time.
    pub fn suppose(&mut self, loss: f64) {
        self.supposed = loss;
        self.judge();
    }

    /// Begins with `loss`, which an earlier connection has seen on this path, in place of nothing. It counts like a few hundred
    /// packets.
    pub fn remember(&mut self, loss: f64) {
        self.long = Average { loss, runs: loss };
        self.judge();
    }

    fn judge(&mut self) {
        self.active = self.loss() >= if self.active { END } else { BEGIN };
    }

    /// What is believed: the last packets alone, where they have lost more than by chance.
    fn believed(&self) -> Average {
        let supposed = self.doubt * self.supposed;
        let long = Average { loss: self.long.loss + supposed, runs: self.long.runs + supposed };
        // The variance of an exponential average is that of 2 × memory packets.
        let chance = (self.recent.loss * self.recent.dispersion() / (2.0 * RECENTLY)).sqrt();
        let loss = self.recent.loss - chance;
        // So few packets say little of how long runs are.
        let run = self.recent.run().max(long.run());
        if loss > long.loss { Average { loss, runs: loss / run } } else { long }
    }

    /// Share of packets that the path loses.
    pub fn loss(&self) -> f64 {
        self.believed().loss
    }

    /// Bytes of repair for each byte sent, at most `most`. Where more is lost than that could make good, none: it would
    /// only add to what overloads the path.
    pub fn share(&self, most: f64) -> f64 {
        let believed = self.believed();
        if !self.active || believed.loss > most {
            return 0.0;
        }
        let window = WINDOW as f64;
        (believed.bound(window, MARGIN).max(believed.longest_run()) / window).min(most)
    }

    /// Repairs that the last `packets` want to be covered by when nothing follows them.
    pub fn tail(&self, packets: usize) -> usize {
        let bound = || self.believed().bound(packets as f64, TAIL_MARGIN);
        if packets == 0 { 0 } else { bound().ceil().max(1.0) as usize }
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
    fn a_shower_after_much_sunshine_shows_within_a_few_hundred_packets() {
        let mut reports = vec![(0, 0); 40];
        reports.push((15, 15));
        let share = after(&reports).share(0.25);
        assert!((0.06..0.10).contains(&share), "{share}");
        // One packet alone is no shower.
        reports[40] = (1, 1);
        assert_eq!(after(&reports).share(0.25), 0.0);
    }

    #[test]
    fn where_nothing_was_seen_the_other_direction_is_believed_until_much_was() {
        let mut estimate = Estimate::new(0);
        estimate.suppose(0.02);
        let before = estimate.share(0.25);
        assert!(before > 0.05, "{before}");
        let report = |newest| Report { newest, ..Report::default() };
        estimate.update(&report(250), 250);
        let half = estimate.loss();
        assert!((0.005..0.015).contains(&half), "{half}");
        for reports in 2..40 {
            estimate.update(&report(250 * reports), 250 * reports);
        }
        assert_eq!(estimate.share(0.25), 0.0);
        estimate.suppose(0.0);
        assert_eq!(estimate.loss(), 0.0);
    }

    #[test]
    fn what_an_earlier_connection_saw_is_believed_until_this_one_knows_better() {
        let mut estimate = Estimate::new(0);
        estimate.remember(0.01);
        assert!((0.04..0.05).contains(&estimate.share(0.25)), "{}", estimate.share(0.25));
        assert_eq!([1, 20, 100].map(|packets| estimate.tail(packets)), [1, 2, 4]);
        assert!(estimate.update(&Report { newest: 500, ..Report::default() }, 500));
        assert!(estimate.loss() < 0.006, "{}", estimate.loss());
        let mut nothing_lost = Estimate::new(0);
        nothing_lost.remember(0.0);
        assert_eq!(nothing_lost.share(0.25), 0.0);
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

//! Whether the contracted rate is really there. Counts what arrives and what is lost in each round
//! trip; when several lose a lot or queue for long, the rate believed in falls to what was
//! delivered, and is then tried upwards again with growing patience. It must not size windows:
//! that is `paced`.
//!
//! Random loss of a few per cent and a single short outage leave the contract standing, since a
//! satellite link does both and a window that shrinks for them only wastes capacity.

use std::time::Duration;

use farhop_units::BitRate;

use crate::rounds::{Round, Rounds};
use crate::{Ack, Loss};

/// Above this share of lost bytes a round trip counts as overloaded; fades lose less or everything.
const HEAVY_LOSS: f64 = 0.10;
/// Below this share a round trip counts as clean.
const LIGHT_LOSS: f64 = 0.03;
/// At the contracted rate the cap stretches the RTT by a quarter at most. Well above that, a queue
/// stands before something slower or shared, and less loss suffices to call it overloaded; not the
/// queue alone, or whoever heeds it starves beside whoever does not.
const STANDING_QUEUE: f64 = 1.5;
const LOSS_BESIDE_QUEUE: f64 = 0.04;
/// So far stretched, the queue alone suffices.
const DEEP_QUEUE: f64 = 2.5;
/// Seconds below which a base RTT says nothing about queues: hosts are slower to answer than that.
const SHORTEST_BASE: f64 = 0.02;
/// Overload must also show in what is delivered, or it is not the rate that is missing.
const SHORTFALL: f64 = 0.9;
/// A sender that is fed at the rate itself seems to have nothing more to send; that it offered so much of it shows that
/// it had enough.
const PRESSED: f64 = 0.9;
/// Each overloaded round trip raises the suspicion, each other one lowers it. A cut of some hundred
/// milliseconds hits what arrives and what leaves and so shows in two round trips in a row; three in
/// a row, or every second one for longer, are no cut.
const RAISE: u32 = 2;
const LOWER: u32 = 1;
const VERDICT: u32 = 6;
/// Each try raises the rate by this factor; the cap then still fits a queue of one BDP.
const STEP: f64 = 1.5;
/// A higher rate shows in what is delivered after one round trip to fill the link and one to count.
const PROOF: u32 = 2;
/// Round trips before the first try, doubled by each that fails up to the last.
const FIRST_WAIT: u32 = 4;
const LONGEST_WAIT: u32 = 64;
/// Below this share of the contract there is nothing to learn.
const FLOOR: f64 = 1.0 / 64.0;
/// So few lost bytes prove nothing on links that hold a dozen packets.
const ENOUGH_LOST: u64 = 3 * 1200;

/// The rate believed in, at most the contracted one.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    /// Bytes per second.
    contract: f64,
    believed: f64,
    rounds: Rounds,
    /// The window was full in the round trip under way.
    was_full: bool,
    suspicion: u32,
    /// The rate was raised and has still to prove itself.
    trying: bool,
    /// Clean round trips still to wait before the next try, and how many the next fall will set.
    wait: u32,
    next_wait: u32,
}

impl Trust {
    pub(crate) fn new(rate: BitRate) -> Self {
        let contract = (rate.0 as f64 / 8.0).max(1.0);
        Trust {
            contract,
            believed: contract,
            rounds: Rounds::default(),
            was_full: false,
            suspicion: 0,
            trying: false,
            wait: 0,
            next_wait: FIRST_WAIT,
        }
    }

    /// Bytes per second, headers included.
    pub(crate) fn rate(&self) -> f64 {
        self.believed
    }

    /// Whether that is the contracted one.
    pub(crate) fn is_whole(&self) -> bool {
        self.believed >= self.contract
    }

    /// Takes an acknowledgement in; `is_full` says that the window held the sender back.
    pub(crate) fn on_ack(&mut self, ack: &Ack, base_rtt: Duration, is_full: bool) {
        if let Some(round) = self.rounds.on_ack(ack) {
            let was_full = std::mem::take(&mut self.was_full);
            self.judge(&round, was_full, ack.rtt, base_rtt);
        }
        self.was_full |= is_full;
    }

    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        self.rounds.on_loss(loss);
    }

    /// Starts counting anew without a verdict.
    pub(crate) fn forget_round(&mut self, now: Duration) {
        self.rounds.restart(now);
    }

    fn judge(&mut self, round: &Round, was_full: bool, rtt: Duration, base_rtt: Duration) {
        let lost_share = round.lost_share();
        let delivered = round.rate();
        let stretch = rtt.as_secs_f64() / base_rtt.as_secs_f64().max(SHORTEST_BASE);
        let deep_queue = stretch > DEEP_QUEUE;
        let tolerated = if stretch > STANDING_QUEUE { LOSS_BESIDE_QUEUE } else { HEAVY_LOSS };
        let heavy_loss = lost_share > tolerated && round.lost >= ENOUGH_LOST;
        let offered = delivered / (1.0 - lost_share);
        let pressed = was_full || !round.app_limited || offered >= PRESSED * self.believed;
        let overloaded = pressed && delivered < SHORTFALL * self.believed && (heavy_loss || deep_queue);

        if overloaded {
            self.suspicion += RAISE;
            if self.suspicion >= VERDICT {
                self.fall_to(delivered);
            }
            return;
        }
        self.suspicion = self.suspicion.saturating_sub(LOWER);
        // An idle sender learns nothing about the rate, so its round trips do not count as waiting.
        if self.believed < self.contract && lost_share < LIGHT_LOSS && !deep_queue && pressed {
            self.climb(delivered);
        }
    }

    fn fall_to(&mut self, delivered: f64) {
        self.believed = delivered.clamp(self.contract * FLOOR, self.believed);
        self.suspicion = 0;
        self.trying = false;
        self.wait = self.next_wait;
        self.next_wait = (self.next_wait * 2).min(LONGEST_WAIT);
    }

    fn climb(&mut self, delivered: f64) {
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        if self.trying && delivered < SHORTFALL * self.believed {
            return self.fall_to(delivered); // no loss yet, but only the queue has grown
        }
        self.believed = (self.believed * STEP).min(self.contract);
        self.trying = true;
        self.wait = PROOF;
        if self.believed >= self.contract {
            self.next_wait = FIRST_WAIT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RTT, ack_at};
    use farhop_units::Bytes;

    /// Plays `rounds` round trips in which `delivered` Mbit/s arrive and `lost` of all bytes do not.
    fn play(trust: &mut Trust, from: u32, rounds: u32, delivered: u64, lost: f64) {
        for round in from..from + rounds {
            let bytes = BitRate::mbit(delivered).bytes_in(RTT);
            let now = RTT * (round + 1);
            let ack = Ack { now, sent: RTT * round, bytes, ..ack_at(0) };
            trust.on_ack(&ack, RTT, false);
            let bytes = Bytes((bytes.0 as f64 * lost / (1.0 - lost)) as u64);
            trust.on_loss(&Loss { now, sent: ack.sent, bytes, persistent: false });
        }
    }

    fn mbit(trust: &Trust) -> f64 {
        (trust.rate() * 8.0 / 1e5).round() / 10.0
    }

    #[test]
    fn a_few_per_cent_of_random_loss_leave_the_contract_standing() {
        let mut trust = Trust::new(BitRate::mbit(8));
        play(&mut trust, 0, 50, 7, 0.05);
        assert_eq!(mbit(&trust), 8.0);
    }

    #[test]
    fn a_short_cut_leaves_the_contract_standing() {
        let mut trust = Trust::new(BitRate::mbit(8));
        play(&mut trust, 0, 2, 2, 0.7);
        play(&mut trust, 2, 20, 8, 0.0);
        assert_eq!(mbit(&trust), 8.0);
    }

    #[test]
    fn a_rate_that_is_not_there_is_found_out_in_a_few_round_trips() {
        let mut trust = Trust::new(BitRate::mbit(8));
        play(&mut trust, 0, 4, 2, 0.7);
        assert_eq!(mbit(&trust), 2.0);
    }

    #[test]
    fn a_rate_that_comes_back_is_found_again() {
        let mut trust = Trust::new(BitRate::mbit(8));
        play(&mut trust, 0, 4, 2, 0.7);
        play(&mut trust, 4, 20, 8, 0.0);
        assert_eq!(mbit(&trust), 8.0);
    }

    #[test]
    fn a_try_that_delivers_no_more_is_taken_back_and_the_next_waits_longer() {
        let mut trust = Trust::new(BitRate::mbit(8));
        play(&mut trust, 0, 4, 2, 0.7);
        let rates: Vec<f64> = (4..24)
            .map(|round| {
                play(&mut trust, round, 1, 2, 0.0);
                mbit(&trust)
            })
            .collect();
        let (low, high) = (2.0, 3.0);
        let mut expected = [low; 20];
        expected[5..8].fill(high); // after the verdict and four round trips, for three
        expected[17..20].fill(high); // after the verdict and eight more
        assert_eq!(rates, expected);
    }

    #[test]
    fn a_standing_queue_of_several_round_trips_counts_as_overload() {
        let mut trust = Trust::new(BitRate::mbit(8));
        for round in 0..5u32 {
            let ack = Ack {
                now: RTT * 4 * (round + 1),
                sent: RTT * 4 * round,
                bytes: BitRate::mbit(2).bytes_in(RTT * 4),
                rtt: RTT * 4,
                ..ack_at(0)
            };
            trust.on_ack(&ack, RTT, false);
        }
        assert_eq!(mbit(&trust), 2.0);
    }

    #[test]
    fn a_sender_with_nothing_to_send_proves_nothing() {
        let mut trust = Trust::new(BitRate::mbit(8));
        for round in 0..10u32 {
            let now = RTT * (round + 1);
            let ack = Ack { now, sent: RTT * round, bytes: Bytes(10_000), app_limited: true, ..ack_at(0) };
            trust.on_ack(&ack, RTT, false);
            trust.on_loss(&Loss { now, sent: ack.sent, bytes: Bytes(9_000), persistent: false });
        }
        assert_eq!(mbit(&trust), 8.0);
    }
}

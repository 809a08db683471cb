//! How packets get lost at random: the models as numbers, and the state that one of them needs. Losses by a full queue or an
//! outage are not here.

use farhop_units::Bytes;

use crate::Rng;

/// A model of random loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Each packet with this probability, whatever became of others.
    Independent(f64),
    /// In bursts.
    Bursts(Bursts),
    /// Each bit is wrong with this probability, and a packet with a wrong bit is lost.
    Bits(f64),
}

/// Gilbert's and Elliott's channel: a good and a bad state, each with a loss of its own (Gilbert, "Capacity of a burst-noise
/// channel", BSTJ 1960; Elliott, "Estimates of error rates for codes on burst-noise channels", BSTJ 1963). It begins in the
/// good state and may change after each packet; all four numbers are probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// From good to bad.
    pub enter: f64,
    /// From bad to good: bursts last 1/`leave` packets on average.
    pub leave: f64,
    /// Loss in the good state.
    pub good: f64,
    /// Loss in the bad state.
    pub bad: f64,
}

impl Loss {
    /// Nothing is lost.
    pub const NONE: Loss = Loss::Independent(0.0);

    /// The share of packets of this size that is lost in the long run, `0.0..=1.0`.
    pub fn share(&self, size: Bytes) -> f64 {
        match self {
            Loss::Independent(share) => *share,
            // The stationary distribution of the chain: enter/(enter+leave) of the packets meet the bad state.
            Loss::Bursts(Bursts { enter, leave, good, bad }) if enter + leave > 0.0 => {
                (good * leave + bad * enter) / (enter + leave)
            }
            Loss::Bursts(bursts) => bursts.good,
            Loss::Bits(wrong) => 1.0 - (1.0 - wrong).powf(8.0 * size.0 as f64),
        }
    }
}

/// A stretch on which a [`Loss`] strikes.
#[derive(Debug)]
pub(crate) struct Channel {
    rng: Rng,
    /// The state of [`Loss::Bursts`].
    bad: bool,
}

impl Channel {
    pub(crate) fn new(rng: Rng) -> Self {
        Channel { rng, bad: false }
    }

    /// Whether the next packet, of `size`, is lost.
    pub(crate) fn loses(&mut self, loss: &Loss, size: Bytes) -> bool {
        let Loss::Bursts(bursts) = loss else {
            return self.rng.chance(loss.share(size));
        };
        let lost = self.rng.chance(if self.bad { bursts.bad } else { bursts.good });
        let turns = self.rng.chance(if self.bad { bursts.leave } else { bursts.enter });
        self.bad ^= turns;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of the runs of losses among `packets`.
    fn runs(loss: Loss, packets: usize) -> Vec<usize> {
        let mut channel = Channel::new(Rng::new(5));
        let mut runs = vec![0];
        for _ in 0..packets {
            match (channel.loses(&loss, Bytes(1000)), runs.last_mut()) {
                (true, Some(run)) => *run += 1,
                (false, Some(0)) => {}
                _ => runs.push(0),
            }
        }
        runs.retain(|run| *run > 0);
        runs
    }

    #[test]
    fn bursts_are_as_long_and_as_frequent_as_the_chain_says() {
        let loss = Loss::Bursts(Bursts { enter: 0.01, leave: 0.25, good: 0.0, bad: 1.0 });
        let packets = 400_000;
        let runs = runs(loss, packets);
        let lost = runs.iter().sum::<usize>() as f64;
        let mean = lost / runs.len() as f64;
        assert!((mean - 4.0).abs() < 0.15, "runs of {mean}, not of 1/leave");
        // Geometric: a run goes on with probability 1 − leave, whatever its length.
        let longer = |than: usize| runs.iter().filter(|run| **run > than).count() as f64;
        assert!((longer(1) / longer(0) - 0.75).abs() < 0.02);
        assert!((longer(4) / longer(3) - 0.75).abs() < 0.03);
        let share = lost / packets as f64;
        assert!((share - loss.share(Bytes(1))).abs() < 0.003, "{share} lost");
        assert!((loss.share(Bytes(1)) - 0.01 / 0.26).abs() < 1e-12);
    }

    #[test]
    fn wrong_bits_lose_long_packets_more_often() {
        let loss = Loss::Bits(1e-5);
        // 1 − (1 − 1e-5)^12000 = 1 − e^(−0.12000060…)
        assert!((loss.share(Bytes(1500)) - 0.113_080).abs() < 1e-5);
        assert!((loss.share(Bytes(40)) - 0.003_194_9).abs() < 1e-6);
        let mut channel = Channel::new(Rng::new(3));
        let lost = (0..100_000).filter(|_| channel.loses(&loss, Bytes(1500))).count();
        assert!((lost as f64 / 1e5 - 0.113_08).abs() < 0.004, "{lost} of 100,000");
    }

    #[test]
    fn a_channel_that_never_turns_bad_loses_nothing() {
        let quiet = Loss::Bursts(Bursts { enter: 0.0, leave: 0.0, good: 0.0, bad: 1.0 });
        assert!(runs(quiet, 10_000).is_empty());
        assert_eq!(quiet.share(Bytes(1500)), 0.0);
    }
}

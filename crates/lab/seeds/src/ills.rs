//! What a path does to the datagrams of one way beside delay, rate, queue and cuts, which are `core/orbit`'s. Pure.

use std::fmt;
use std::time::Duration;

use crate::dice::Dice;

/// How badly one way treats what is sent on it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ills {
    /// Share of datagrams lost, `0.0..1.0`.
    pub loss: f64,
    /// How many are lost in a row on average (Gilbert's channel); 1 for losses that know nothing of each other.
    pub burst: f64,
    /// Share of datagrams in which one bit is turned.
    pub damage: f64,
    /// Share of datagrams that arrive twice.
    pub twice: f64,
    /// Share of datagrams that are overtaken.
    pub overtaken: f64,
    /// By how much at most.
    pub late: Duration,
    /// Larger datagrams vanish from some time on.
    pub hole: Option<Hole>,
}

/// A path that takes only small datagrams, and tells nobody (RFC 8899 §1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// When it begins, after the carrier stands.
    pub from: Duration,
    /// The largest UDP payload that passes.
    pub largest: usize,
}

impl Ills {
    /// Nothing befalls datagrams.
    pub fn are_none(&self) -> bool {
        let Ills { loss, burst: _, damage, twice, overtaken, late: _, hole } = *self;
        [loss, damage, twice, overtaken].iter().all(|share| *share == 0.0) && hole.is_none()
    }
}

/// No run of losses lasts longer, however little is sent meanwhile: what does is a cut, and drawn as such.
const LONGEST_RUN: Duration = Duration::from_millis(500);

/// One copy of a datagram that goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passing {
    /// How long it is held back first.
    pub(crate) late: Duration,
    /// The bit that is turned in it.
    pub(crate) flipped: Option<usize>,
}

/// One way in its course.
#[derive(Debug)]
pub(crate) struct Channel {
    ills: Ills,
    dice: Dice,
    /// When the run of losses began that goes on.
    bad: Option<Duration>,
}

impl Channel {
    pub(crate) fn new(ills: Ills, seed: u64) -> Channel {
        Channel { ills, dice: Dice::new(seed), bad: None }
    }

    /// What becomes of a datagram of `len` bytes sent now, so long after the carrier stood, or before.
    pub(crate) fn meet(&mut self, now: Duration, standing: Option<Duration>, len: usize) -> Vec<Passing> {
        let Ills { loss, burst, damage, twice, overtaken, late, hole } = self.ills;
        let leave = 1.0 / burst.max(1.0);
        self.bad.take_if(|since| now >= *since + LONGEST_RUN);
        let turn = if self.bad.is_some() { leave } else { leave * loss / (1.0 - loss) };
        if self.dice.chance(turn) {
            self.bad = if self.bad.is_some() { None } else { Some(now) };
        }
        if self.bad.is_some() || hole.is_some_and(|hole| standing >= Some(hole.from) && len > hole.largest) {
            return Vec::new();
        }
        let flipped = self.dice.chance(damage).then(|| self.dice.below(8 * len as u64) as usize);
        let late = if self.dice.chance(overtaken) {
            late.mul_f64(self.dice.between(0.0, 1.0))
        } else {
            Duration::ZERO
        };
        let copies = 1 + usize::from(self.dice.chance(twice));
        vec![Passing { late, flipped }; copies]
    }
}

impl fmt::Display for Ills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Ills::default() {
            return f.write_str("clean");
        }
        let Ills { loss, burst, damage, twice, overtaken, late, hole } = self;
        write!(f, "lost {loss:.4} in runs of {burst:.1}, damaged {damage:.4}, twice {twice:.4}")?;
        write!(f, ", overtaken {overtaken:.4} by up to {late:?}")?;
        if let Some(Hole { from, largest }) = hole {
            write!(f, ", nothing above {largest} B after {from:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of 100,000 datagrams of 1,000 bytes that are lost, damaged, sent twice, late.
    fn shares(ills: Ills) -> [f64; 4] {
        let mut channel = Channel::new(ills, 1);
        let mut counts = [0; 4];
        for _ in 0..100_000 {
            let met = channel.meet(Duration::ZERO, None, 1000);
            let first = met.first();
            counts[0] += usize::from(met.is_empty());
            counts[1] += usize::from(first.is_some_and(|passing| passing.flipped.is_some()));
            counts[2] += usize::from(met.len() == 2);
            counts[3] += usize::from(first.is_some_and(|passing| !passing.late.is_zero()));
        }
        counts.map(|count| count as f64 / 1e5)
    }

    #[test]
    fn a_channel_is_as_bad_as_it_is_told_to_be() {
        let late = Duration::from_millis(5);
        let ills =
            Ills { loss: 0.04, burst: 3.0, damage: 0.02, twice: 0.03, overtaken: 0.05, late, hole: None };
        let got = shares(ills);
        for (got, wanted) in got.into_iter().zip([0.04, 0.0192, 0.0288, 0.048]) {
            assert!((got / wanted - 1.0).abs() < 0.1, "{got} instead of {wanted}");
        }
        assert_eq!(shares(Ills::default()), [0.0; 4]);
    }

    #[test]
    fn losses_come_in_runs_of_the_length_asked_for() {
        let mut channel = Channel::new(Ills { loss: 0.05, burst: 4.0, ..Ills::default() }, 2);
        let lost: Vec<bool> =
            (0..100_000).map(|_| channel.meet(Duration::ZERO, None, 100).is_empty()).collect();
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let mean = lost.iter().filter(|lost| **lost).count() as f64 / runs as f64;
        assert!((mean - 4.0).abs() < 0.4, "{mean}");
    }

    #[test]
    fn a_run_of_losses_ends_when_it_has_lasted() {
        let mut channel = Channel::new(Ills { loss: 0.5, burst: 1e3, ..Ills::default() }, 2);
        let mut lost = |at: Duration| channel.meet(at, None, 100).is_empty();
        let interval = LONGEST_RUN / 5;
        let at = (0..).map(|number| interval * number).find(|at| lost(*at)).unwrap();
        assert!((1..5).all(|number| lost(at + interval * number)));
        assert!(!lost(at + LONGEST_RUN));
    }

    #[test]
    fn a_hole_takes_what_is_large_from_its_time_on() {
        let from = Duration::from_secs(3);
        let ills = Ills { hole: Some(Hole { from, largest: 1300 }), ..Ills::default() };
        let mut channel = Channel::new(ills, 1);
        let mut passes = |standing, len| !channel.meet(Duration::ZERO, standing, len).is_empty();
        assert!(passes(None, 1400) && passes(Some(from / 2), 1400));
        assert!(passes(Some(from), 1300) && !passes(Some(from), 1301));
    }
}

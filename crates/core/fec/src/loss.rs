//! How many packets a path loses, and in runs of what length: counted where they should arrive. What an outage takes is no
//! loss that a code could follow, and does not count.

use crate::decoder::REACH;

/// Packets by which another may be overtaken before it counts as lost: satellite modems reorder by a frame or two.
const REORDERING: u32 = 32;
/// A longer run is an outage: twice what repairs could make good of a window.
const LONGEST_RUN: u32 = 64;

/// Counts the losses of one direction.
#[derive(Debug)]
pub(crate) struct Losses {
    newest: u32,
    /// The newest number that is decided.
    judged: u32,
    arrived: [bool; REACH as usize],
    /// Length so far of the run in which the last decided number stands.
    run: u32,
    lost: u32,
    runs: u32,
}

impl Losses {
    /// Nothing seen yet; `newest` is the number before the first packet's.
    pub(crate) fn new(newest: u32) -> Self {
        Losses { newest, judged: newest, arrived: [false; REACH as usize], run: 0, lost: 0, runs: 0 }
    }

    /// A number is known to have been used, since it or one after it was seen.
    pub(crate) fn advance(&mut self, newest: u32) {
        let step = newest.wrapping_sub(self.newest);
        if step >= REACH - REORDERING {
            return self.resume(newest);
        }
        for _ in 0..step {
            self.newest = self.newest.wrapping_add(1);
            self.arrived[(self.newest % REACH) as usize] = false;
        }
        while self.newest.wrapping_sub(self.judged) > REORDERING {
            self.judge();
        }
    }

    /// As [`Losses::advance`], but what is missing before `newest` fell into an outage.
    pub(crate) fn resume(&mut self, newest: u32) {
        self.restart(newest.wrapping_sub(1));
        self.newest = newest;
        self.arrived = [false; REACH as usize];
    }

    fn judge(&mut self) {
        self.judged = self.judged.wrapping_add(1);
        if self.has_arrived(self.judged) {
            self.run = 0;
            return;
        }
        self.run = self.run.saturating_add(1);
        if self.run.saturating_add(self.missing_after_judged()) > LONGEST_RUN {
            return;
        }
        self.lost = self.lost.wrapping_add(1);
        if self.run == 1 {
            self.runs = self.runs.wrapping_add(1);
        }
    }

    fn has_arrived(&self, sequence: u32) -> bool {
        self.arrived[(sequence % REACH) as usize]
    }

    /// How far the run in which the last decided number stands goes on.
    fn missing_after_judged(&self) -> u32 {
        let undecided = 1..self.newest.wrapping_sub(self.judged);
        undecided.take_while(|ahead| !self.has_arrived(self.judged.wrapping_add(*ahead))).count() as u32
    }

    /// Begins anew after number `newest`, with what was counted so far.
    pub(crate) fn restart(&mut self, newest: u32) {
        (self.newest, self.judged, self.run) = (newest, newest, 0);
    }

    /// A packet has arrived by itself. Call [`Losses::advance`] first if it is the newest.
    pub(crate) fn arrived(&mut self, sequence: u32) {
        if self.newest.wrapping_sub(sequence) < REACH {
            self.arrived[(sequence % REACH) as usize] = true;
        }
    }

    /// The newest number.
    pub(crate) fn newest(&self) -> u32 {
        self.newest
    }

    /// Packets lost, and the runs in which they were.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.lost, self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(start: u32, arrive: impl Fn(u32) -> bool, packets: u32) -> (u32, u32) {
        let mut losses = Losses::new(start);
        for index in (1..=packets).filter(|index| arrive(*index)) {
            let sequence = start.wrapping_add(index);
            losses.advance(sequence);
            losses.arrived(sequence);
        }
        losses.counts()
    }

    #[test]
    fn losses_and_their_runs_are_counted_across_the_wrap() {
        for start in [0, 41, u32::MAX - 100] {
            assert_eq!(counted(start, |_| true, 500), (0, 0));
            assert_eq!(counted(start, |index| index % 100 != 50, 500), (5, 5));
            assert_eq!(counted(start, |index| index % 100 > 9, 500), (49, 5), "the first is 1, not 0");
        }
    }

    #[test]
    fn a_packet_that_was_overtaken_is_not_lost() {
        let mut losses = Losses::new(0);
        for index in (1..=30).chain([32, 33, 31]).chain(34..=200) {
            if index > losses.newest() {
                losses.advance(index);
            }
            losses.arrived(index);
        }
        assert_eq!(losses.counts(), (0, 0));
    }

    #[test]
    fn an_outage_counts_for_nothing() {
        assert_eq!(counted(0, |index| !(100..120).contains(&index), 500), (20, 1), "no outage");
        assert_eq!(counted(0, |index| !(100..200).contains(&index), 500), (0, 0));
        assert_eq!(counted(0, |index| !(100..1000).contains(&index), 1500), (0, 0));
    }

    #[test]
    fn what_is_resumed_after_has_lost_nothing_before() {
        let mut losses = Losses::new(0);
        for sequence in (1..=100).chain(131..=300) {
            if sequence == 131 {
                losses.resume(sequence)
            } else {
                losses.advance(sequence)
            }
            losses.arrived(sequence);
        }
        assert_eq!(losses.counts(), (0, 0));
    }
}

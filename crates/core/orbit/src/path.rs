//! Both directions of a link on one clock. `Direction` holds the model; here they are only joined, and here
//! signalling between them (capacity requests) has its place.

use farhop_units::Bytes;
use std::fmt;
use std::time::Duration;

use crate::{Counters, Direction, Fate, Profile, Rng, Transmit};

/// A direction of the satellite link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// Gateway → terminal.
    Forward,
    /// Terminal → gateway.
    Return,
}

impl Way {
    /// Both, forward first.
    pub const BOTH: [Way; 2] = [Way::Forward, Way::Return];

    /// The other one.
    pub fn opposite(self) -> Way {
        match self {
            Way::Forward => Way::Return,
            Way::Return => Way::Forward,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Forward => "forward",
            Way::Return => "return",
        })
    }
}

/// A satellite link: a forward and a return [`Direction`].
#[derive(Debug)]
pub struct Path<P> {
    forward: Direction<P>,
    return_: Direction<P>,
}

impl<P> Path<P> {
    /// An idle link. Equal seeds and equal inputs give equal outputs.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let (forward, return_) = Path::directions(profile, seed);
        Path { forward, return_ }
    }

    /// The two directions by themselves, for a caller that drives each from its own thread; they behave as
    /// those of [`Path::new`] with the same seed.
    pub fn directions(profile: &Profile, seed: u64) -> (Direction<P>, Direction<P>) {
        let mut seeds = Rng::new(seed);
        (
            Direction::new(profile.forward.clone(), seeds.next_u64()),
            Direction::new(profile.return_.clone(), seeds.next_u64()),
        )
    }

    /// Offers a packet that reaches the link at `now` on its `way`.
    pub fn handle_packet(&mut self, now: Duration, way: Way, size: Bytes, packet: P) -> Fate {
        self.direction_mut(way).handle_packet(now, size, packet)
    }

    /// The next packet due by `now`, in the order in which they are due; call until it gives `None`.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<(Way, Transmit<P>)> {
        // What a queue lets go by now is in the air then, and known with its time.
        Way::BOTH.into_iter().for_each(|way| self.direction_mut(way).advance(now));
        let first = match (self.forward.next_wakeup(), self.return_.next_wakeup()) {
            (Some(forward), Some(return_)) if return_ < forward => Way::Return,
            (None, Some(_)) => Way::Return,
            _ => Way::Forward,
        };
        // A cut may eat all that one direction has due, so the other is asked as well.
        [first, first.opposite()]
            .into_iter()
            .find_map(|way| self.direction_mut(way).poll_transmit(now).map(|transmit| (way, transmit)))
    }

    /// When [`Path::poll_transmit`] has something to do next.
    pub fn next_wakeup(&self) -> Option<Duration> {
        self.forward.next_wakeup().into_iter().chain(self.return_.next_wakeup()).min()
    }

    /// Cuts both directions.
    pub fn cut(&mut self, now: Duration) {
        Way::BOTH.into_iter().for_each(|way| self.direction_mut(way).cut(now));
    }

    /// Restores both directions.
    pub fn restore(&mut self, now: Duration) {
        Way::BOTH.into_iter().for_each(|way| self.direction_mut(way).restore(now));
    }

    /// Goes over to another profile, see [`Direction::switch`].
    pub fn switch(&mut self, now: Duration, profile: &Profile) {
        Way::BOTH.into_iter().for_each(|way| self.direction_mut(way).switch(now, profile.leg(way).clone()));
    }

    /// One direction.
    pub fn direction(&self, way: Way) -> &Direction<P> {
        match way {
            Way::Forward => &self.forward,
            Way::Return => &self.return_,
        }
    }

    /// One direction, to cut or switch it alone.
    pub fn direction_mut(&mut self, way: Way) -> &mut Direction<P> {
        match way {
            Way::Forward => &mut self.forward,
            Way::Return => &mut self.return_,
        }
    }

    /// Counters of one way since the start or the last [`Path::take_counters`].
    pub fn counters(&self, way: Way) -> Counters {
        self.direction(way).counters()
    }

    /// Reads the counters of one way and starts them afresh.
    pub fn take_counters(&mut self, way: Way) -> Counters {
        self.direction_mut(way).take_counters()
    }
}

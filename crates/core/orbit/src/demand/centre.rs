//! The network control centre: hears requests and gives each terminal its slots of a superframe, category by category
//! (EN 301 790 §6.6.1: CRA, RBDC, VBDC, FCA). It never gives more slots than there are.

use std::collections::VecDeque;

use super::{OnDemand, Request, Volume};

/// What the centre knows of a terminal.
#[derive(Debug, Default, Clone)]
struct Seat {
    /// What the constant rate has saved up for its next slot.
    saved: u128,
    /// Slots in each superframe, and the first superframe that no longer has them.
    rate: (u32, u64),
    /// Bytes of slots asked for by volume and not yet given.
    volume: u64,
    /// Bytes given by volume in the superframes of the last control round.
    recent: VecDeque<u64>,
}

/// What a terminal is given in a superframe, in slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Given {
    pub(super) slots: u32,
    /// Those among them that were asked for by volume.
    pub(super) volume: u32,
}

#[derive(Debug)]
pub(super) struct Centre {
    seats: Vec<Seat>,
    /// Requests by the superframe from which on they count.
    heard: VecDeque<(u64, usize, Request)>,
}

impl Centre {
    pub(super) fn new(terminals: usize) -> Self {
        Centre { seats: vec![Seat::default(); terminals], heard: VecDeque::new() }
    }

    /// A request that counts from superframe `from` on; later ones never count sooner.
    pub(super) fn hear(&mut self, from: u64, terminal: usize, request: Request) {
        self.heard.push_back((from, terminal, request));
    }

    /// Whether nothing is asked for.
    pub(super) fn is_quiet(&self) -> bool {
        self.heard.is_empty() && self.seats.iter().all(|seat| seat.volume == 0 && seat.rate.0 == 0)
    }

    /// Gives out superframe `frame`; each is given out once, in order.
    pub(super) fn give(&mut self, link: &OnDemand, frame: u64) -> Vec<Given> {
        while let Some((_, terminal, request)) = self.heard.pop_front_if(|first| first.0 <= frame) {
            if let Some(seat) = self.seats.get_mut(terminal) {
                seat.take(link, frame, request);
            }
        }
        let mut left = u32::try_from(link.slots_of(link.capacity)).unwrap_or(u32::MAX);
        let mut given = vec![Given::default(); self.seats.len()];
        let turn = usize::try_from(frame % self.seats.len().max(1) as u64).unwrap_or(0);
        let constant = self.seats.iter_mut().map(|seat| seat.constant(link)).collect::<Vec<_>>();
        let rates = self.seats.iter_mut().map(|seat| seat.rate_at(frame)).collect::<Vec<_>>();
        for wants in [constant, rates] {
            for (given, slots) in given.iter_mut().zip(share(&mut left, wants, turn)) {
                given.slots += slots;
            }
        }
        let volumes = self.seats.iter().map(|seat| slots_for(link, seat.volume)).collect();
        for ((given, seat), slots) in
            given.iter_mut().zip(&mut self.seats).zip(share(&mut left, volumes, turn))
        {
            *given = Given { slots: given.slots + slots, volume: slots };
            let bytes = u64::from(slots) * link.slot.0;
            seat.volume = seat.volume.saturating_sub(bytes);
            if link.entitlement.volume == Volume::Absolute {
                seat.recent.push_back(bytes);
                while seat.recent.len() as u64 > link.round() {
                    seat.recent.pop_front();
                }
            }
        }
        if link.entitlement.fca {
            let all = vec![u32::MAX; self.seats.len()];
            for (given, slots) in given.iter_mut().zip(share(&mut left, all, turn)) {
                given.slots += slots;
            }
        }
        given
    }
}

impl Seat {
    fn take(&mut self, link: &OnDemand, frame: u64, request: Request) {
        match request {
            Request::Rate(slots) => self.rate = (slots, frame + u64::from(link.rbdc_timeout.max(1))),
            Request::Add(bytes) => self.volume = self.volume.saturating_add(bytes),
            // What was given since it was asked has come off what it asks for.
            Request::Absolute(bytes) => self.volume = bytes.saturating_sub(self.recent.iter().sum()),
        }
    }

    /// Slots that the constant rate has saved up.
    fn constant(&mut self, link: &OnDemand) -> u32 {
        self.saved += u128::from(link.entitlement.cra.0) * link.superframe.as_nanos();
        let slots = self.saved / link.slot_cost();
        self.saved -= slots * link.slot_cost();
        u32::try_from(slots).unwrap_or(u32::MAX)
    }

    fn rate_at(&mut self, frame: u64) -> u32 {
        if frame >= self.rate.1 {
            self.rate.0 = 0;
        }
        self.rate.0
    }
}

fn slots_for(link: &OnDemand, bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(link.slot.0.max(1))).unwrap_or(u32::MAX)
}

/// Gives slots to all who want some, evenly: nobody gets more than wanted, nor less than another who gets what is wanted. Single ones go
/// round, from `turn` on.
fn share(left: &mut u32, mut wants: Vec<u32>, turn: usize) -> Vec<u32> {
    let mut given = vec![0; wants.len()];
    loop {
        let waiting = u32::try_from(wants.iter().filter(|want| **want > 0).count()).unwrap_or(u32::MAX);
        if *left == 0 || waiting == 0 {
            return given;
        }
        let each = (*left / waiting).max(1);
        for step in 0..wants.len() {
            let seat = (turn + step) % wants.len();
            let slots = wants[seat].min(each).min(*left);
            wants[seat] -= slots;
            given[seat] += slots;
            *left -= slots;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_shared_evenly_and_none_is_given_twice() {
        let shared = |left: u32, wants: &[u32], turn| {
            let mut rest = left;
            let given = share(&mut rest, wants.to_vec(), turn);
            assert_eq!(given.iter().sum::<u32>() + rest, left);
            given
        };
        assert_eq!(shared(10, &[2, 20, 20], 0), [2, 4, 4]);
        assert_eq!(shared(10, &[1, 2, 3], 0), [1, 2, 3]);
        assert_eq!(shared(2, &[9, 9, 9], 2), [1, 0, 1]);
        assert_eq!(shared(7, &[u32::MAX; 3], 1), [2, 3, 2]);
        assert_eq!(shared(5, &[], 0), Vec::<u32>::new());
    }
}

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
    /// Bytes given by volume in the superframes since what is heard next was asked.
    recent: VecDeque<u64>,
    /// Bytes foretold and not yet given, and the first superframe in which that no longer counts.
    foretold: (u64, u64),
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

    /// A request that counts from superframe `from` on.
    pub(super) fn hear(&mut self, from: u64, terminal: usize, request: Request) {
        // What crosses the link takes longer than what is said at the centre itself.
        let place = self.heard.partition_point(|heard| heard.0 <= from);
        self.heard.insert(place, (from, terminal, request));
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
        let mut left = u32::try_from(link.slots()).unwrap_or(u32::MAX);
        let mut given = vec![Given::default(); self.seats.len()];
        let turn = usize::try_from(frame % self.seats.len().max(1) as u64).unwrap_or(0);
        let constant = self.seats.iter_mut().map(|seat| seat.constant(link)).collect::<Vec<_>>();
        let shares = share(&mut left, constant.clone(), turn);
        for ((seat, given), (wanted, slots)) in
            self.seats.iter_mut().zip(&mut given).zip(constant.into_iter().zip(shares))
        {
            given.slots += slots;
            // Where all have saved up for one superframe it may be too short; what is constant comes in the next.
            seat.saved += u128::from(wanted - slots) * link.slot_cost();
        }
        let rates = self.seats.iter_mut().map(|seat| seat.rate_at(frame)).collect::<Vec<_>>();
        for (given, slots) in given.iter_mut().zip(share(&mut left, rates, turn)) {
            given.slots += slots;
        }
        let volumes = self.seats.iter().map(|seat| slots_for(link, seat.volume)).collect();
        for ((given, seat), slots) in
            given.iter_mut().zip(&mut self.seats).zip(share(&mut left, volumes, turn))
        {
            *given = Given { slots: given.slots + slots, volume: slots };
            let bytes = u64::from(slots) * link.slot.0;
            seat.volume = seat.volume.saturating_sub(bytes);
            seat.foretold.0 = seat.foretold.0.saturating_sub(bytes);
            seat.recent.push_back(bytes);
            // What a terminal is given in the superframe in which it asks, it has left out itself.
            while seat.recent.len() as u64 >= link.round() {
                seat.recent.pop_front();
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
            Request::Absolute(bytes) => {
                let foretold = if frame < self.foretold.1 { self.foretold.0 } else { 0 };
                self.volume = bytes.saturating_sub(self.recent.iter().sum()).max(foretold);
            }
            Request::Foretold(..) if link.entitlement.volume == Volume::None => {}
            Request::Foretold(bytes, ago) => {
                // What was foretold before and is not given yet, and what was given since it was said, is not given again.
                let known = if frame < self.foretold.1 { self.foretold.0 } else { 0 };
                let since = self.recent.iter().rev().zip(0..ago).map(|(bytes, _)| bytes).sum::<u64>();
                let more = bytes.saturating_sub(known.saturating_add(since));
                self.volume = self.volume.saturating_add(more);
                self.foretold = (known + more, frame + 2 * link.round());
            }
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
    use crate::{Entitlement, Signalling};
    use farhop_units::{BitRate, Bytes};
    use proptest::prelude::*;
    use std::time::Duration;

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            (0..200u32).prop_map(Request::Rate),
            (0..50_000u64).prop_map(Request::Add),
            (0..50_000u64).prop_map(Request::Absolute),
            (0..50_000u64, 0..20u64).prop_map(|(bytes, ago)| Request::Foretold(bytes, ago)),
        ]
    }

    proptest! {
        /// Whatever twenty terminals ask for, no superframe gives more slots than it has, and CRA is always among them.
        #[test]
        fn no_superframe_is_given_out_twice(
            cra in 0..4u64,
            volume in 0..3usize,
            fca: bool,
            size in 0..20u64,
            superframe in prop::sample::select(vec![26_500u64, 45_000, 50_000]),
            asked in prop::collection::vec((0..60u64, 0..20usize, request()), 0..200),
        ) {
            let link = OnDemand {
                superframe: Duration::from_micros(superframe),
                capacity: BitRate::kbit(640),
                slot: Bytes(100),
                header: Bytes(4),
                control_round: Duration::from_millis(650),
                entitlement: Entitlement {
                    cra: BitRate::kbit(8 * cra),
                    rbdc: BitRate::kbit(320),
                    volume: [Volume::None, Volume::Added, Volume::Absolute][volume],
                    fca,
                },
                rbdc_timeout: 4,
                signalling: Signalling { loss: 0.0, contention: None, size: Bytes(size) },
                terminals: 20,
                others: None,
            };
            prop_assert_eq!(link.check(), Ok(()));
            let slots = link.slots();
            let mut centre = Centre::new(20);
            let mut all = vec![0u64; 20];
            for frame in 0..80 {
                for (_, terminal, request) in asked.iter().filter(|asked| asked.0 == frame) {
                    centre.hear(frame + 13, *terminal, *request);
                }
                let given = centre.give(&link, frame);
                let sum: u128 = given.iter().map(|given| u128::from(given.slots)).sum();
                prop_assert!(sum <= slots, "{} of {} slots in superframe {}", sum, slots, frame);
                prop_assert!(!fca || sum == slots, "FCA leaves none");
                for (all, given) in all.iter_mut().zip(&given) {
                    prop_assert!(given.volume <= given.slots);
                    *all += u64::from(given.slots);
                }
            }
            // 80 superframes of the constant rate, but for the slot that is being saved up and one that waits for the next.
            let constant = u128::from(link.entitlement.cra.0) * u128::from(superframe) * 80 / (100 * 8 * 1_000_000);
            prop_assert!(all.iter().all(|slots| u128::from(*slots) + 2 >= constant), "{:?} {}", all, constant);
        }
    }

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

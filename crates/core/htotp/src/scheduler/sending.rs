//! Datagrams among streams: which of both is next, and what a datagram costs.

use std::time::Duration;

use bytes::Bytes;

use super::flows::Flow;
use super::gathering::AROUND;
use super::turns::{Key, Who};
use super::{Place, Scheduler};
use crate::frame::Class;

/// The share of a rate that the pace counts (`pace`): what a datagram costs is counted by the same measure.
const PAYLOAD_PERCENT: usize = 95;

/// What keeps datagrams back.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The carrier has enough of them, or takes none.
    no_room: bool,
    /// The carrier is full of streams of this class: less urgent ones wait, and as urgent ones take turns with the streams.
    floor: Option<Class>,
    /// Bytes that those of the class of the floor may send before streams have sent as much.
    turn: usize,
}

impl Held {
    /// Streams have sent so much; a turn of theirs is no more than `piece`.
    pub(super) fn streams_sent(&mut self, size: usize, piece: usize) {
        self.turn = (self.turn + size).min(piece);
    }

    fn sent(&mut self, class: Class, size: usize) {
        if self.floor == Some(class) {
            self.turn = self.turn.saturating_sub(size);
        }
    }

    fn admits(&self, class: Class) -> bool {
        let passes_floor = |floor: Class| class < floor || (class == floor && self.turn > 0);
        !self.no_room && self.floor.is_none_or(passes_floor)
    }
}

impl Scheduler {
    /// Adds a datagram of a flow that has this place. It waits no longer than its class may ([`crate::datagram::patience`]).
    pub fn push(&mut self, now: Duration, flow: u64, place: Place, datagram: Bytes) {
        self.now = self.now.max(now);
        for gone in self.flows.sweep(now) {
            self.turns.go(gone.class, gone.user);
        }
        if place.class <= Class::Interactive {
            self.allowance.calm(now);
        }
        if self.flows.is_elsewhere(flow, place) {
            self.move_flow(flow, place);
        }
        self.turn += 1;
        let stood = self.flows.flow(flow).is_some_and(Flow::is_ready);
        self.flows.push(now, flow, place, self.turn, datagram);
        let is_speech = self.flows.flow(flow).is_some_and(|it| it.stands().class == Class::Expedited);
        let stays = stood || (is_speech && self.gathering.waits(now, flow, self.allowance.pace.known()));
        if !stays {
            self.ready_flow(flow);
        }
        while let Some(crowded) = self.crowded() {
            self.flows.drop_oldest(crowded);
            if self.flows.flow(crowded).is_some_and(|flow| !flow.is_ready()) {
                self.unready_flow(crowded);
            }
        }
    }

    /// A flow that has shown to be of another class: what it has waiting moves along.
    fn move_flow(&mut self, number: u64, place: Place) {
        self.unready_flow(number);
        if let Some(stood) = self.flows.replace(number, place) {
            self.turns.go(stood.class, stood.user);
        }
        self.ready_flow(number);
    }

    /// What a ceiling keeps aside makes room first: it would not be sent yet.
    fn crowded(&self) -> Option<u64> {
        let is_aside = |number| self.ceilings.is_aside(Who::Flow(number));
        self.flows.crowd(self.allowance.pace.known(), is_aside)
    }

    /// The carrier is full of streams of the class of `floor`, if there is one; `has_room` where it takes more datagrams.
    pub fn hold_datagrams(&mut self, floor: Option<Class>, has_room: bool) {
        (self.held.floor, self.held.no_room) = (floor, !has_room);
    }

    /// Little is written ahead: there are datagrams for which that would be a delay.
    pub fn is_calm(&self) -> bool {
        self.allowance.is_calm()
    }

    /// Datagrams wait.
    pub fn has_datagrams(&self) -> bool {
        !self.flows.is_empty()
    }

    /// Datagrams that were dropped: too late, or for want of room.
    pub fn dropped_datagrams(&self) -> u64 {
        self.flows.dropped
    }

    /// The datagram to send next, if one is and the pace allows.
    pub fn poll_datagram(&mut self, now: Duration) -> Option<Bytes> {
        if self.flows.is_empty() {
            return None;
        }
        self.now = self.now.max(now);
        self.allowance.refill(now);
        self.end_sprees(now);
        self.take_back(now);
        loop {
            let (class, _, Who::Flow(flow)) = self.next_below_ceiling(now)? else { return None };
            // Voice waits for nothing but itself.
            let waits = match class {
                Class::Expedited => self.allowance.is_overdrawn(),
                _ => self.allowance.is_used_up(),
            };
            if waits {
                return None;
            }
            if let Some(datagram) = self.send_from(now, flow) {
                return Some(datagram);
            }
        }
    }

    fn send_from(&mut self, now: Duration, number: u64) -> Option<Bytes> {
        let (place, pace) = (self.flows.flow(number)?.stands(), self.allowance.pace);
        let datagram = self.flows.pop(now, number);
        let mut around = |length| match place.class {
            Class::Expedited => self.gathering.around(now, length),
            _ => AROUND,
        };
        let length = datagram.as_ref().map(Bytes::len);
        let size = length.map_or(0, |length| (length + around(length)) * PAYLOAD_PERCENT / 100);
        if size > 0 {
            self.turns.charge(place.class, place.user, size);
        }
        let left = self.unready_flow(number);
        if size > 0 {
            self.allowance.take(size);
            self.ceilings.take(place.class, size);
            self.held.sent(place.class, size);
            self.turn += 1;
            self.flows.sent(now, number, size, pace.known(), (self.turn, pace.piece()));
        }
        if let Some(left) = left {
            self.turns.keep(place.class, place.user, left);
        }
        self.ready_flow(number);
        datagram
    }

    /// Whoever is next, of what may be given.
    pub(super) fn next_up(&mut self) -> Option<(Class, u8, Who)> {
        let (piece, floor, held) = (self.allowance.pace.piece(), self.floor, &self.held);
        if self.flows.is_empty() {
            return self.turns.next(piece, floor.is_some());
        }
        if floor.is_none() && held.floor.is_none() && !held.no_room {
            return self.turns.next(piece, false);
        }
        self.turns.next_admitted(piece, |class, key| admits(floor, held, class, key))
    }

    /// Whether anything that is ready may be given, once the pace allows.
    pub(super) fn is_any_admitted(&self) -> bool {
        if self.flows.is_empty() {
            let is_floored =
                self.floor.is_some_and(|floor| self.turns.front().is_some_and(|rank| rank >= floor));
            return !self.turns.is_empty() && !is_floored;
        }
        self.turns.any(|class, key| admits(self.floor, &self.held, class, key))
    }

    pub(super) fn ready_flow(&mut self, number: u64) {
        if let Some(flow) = self.flows.flow(number).filter(|flow| flow.is_ready()) {
            let place = flow.stands();
            if self.ceilings.is_used_up(self.now, place.class) {
                return self.ceilings.put_aside(Who::Flow(number));
            }
            self.turns.insert(place.class, place.user, flow.key(number), self.allowance.pace.piece());
        }
    }

    pub(super) fn unready_flow(&mut self, number: u64) -> Option<i64> {
        self.ceilings.forget(Who::Flow(number));
        self.gathering.forget(number);
        let flow = self.flows.flow(number)?;
        let place = flow.stands();
        self.turns.remove(place.class, place.user, flow.key(number))
    }
}

fn admits(floor: Option<(Class, u8)>, held: &Held, class: Class, key: &Key) -> bool {
    match key {
        (.., Who::Flow(_)) => held.admits(class),
        (urgency, .., Who::Stream(_)) => floor.is_none_or(|floor| (class, *urgency) < floor),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::datagram::{Form, decode, encode};
    use crate::frame::Priority;
    use crate::scheduler::{Pace, StreamId};
    use farhop_units::BitRate;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn place(class: Class, user: u64) -> Place {
        Place { class, user, priority: Priority { incremental: true, ..Priority::default() }, asked: true }
    }

    fn unpaced() -> Scheduler {
        Scheduler::new(ms(0), Pace::default())
    }

    fn push(s: &mut Scheduler, now: Duration, flow: u64, class: Class, user: u64, length: usize) {
        s.push(now, flow, place(class, user), encode(flow, Form::Plain, &vec![7; length]));
    }

    fn stream(s: &mut Scheduler, id: u64, class: Class, user: u64, length: usize) {
        s.open(StreamId(id), place(class, user));
        s.enqueue(StreamId(id), vec![0; length].into());
    }

    fn next(s: &mut Scheduler, now: Duration) -> Option<u64> {
        s.poll_datagram(now).and_then(decode).map(|(flow, ..)| flow)
    }

    fn all(s: &mut Scheduler, now: Duration) -> Vec<u64> {
        std::iter::from_fn(|| next(s, now)).collect()
    }

    #[test]
    fn a_full_carrier_is_given_what_is_as_urgent_in_turn_and_less_urgent_not_at_all() {
        let mut s = unpaced();
        push(&mut s, ms(0), 1, Class::Bulk, 1, 1200);
        push(&mut s, ms(0), 2, Class::Web, 1, 1200);
        push(&mut s, ms(0), 3, Class::Interactive, 1, 100);
        s.set_floor(Some((Class::Web, 3)));
        s.hold_datagrams(Some(Class::Web), true);
        assert_eq!(all(&mut s, ms(1)), [3]);
        assert_eq!(s.next_wakeup(ms(1)), None);
        // What a stream was granted, datagrams of its class may have, too.
        s.set_floor(None);
        stream(&mut s, 9, Class::Web, 2, 1_300);
        s.turns.charge(Class::Web, 1, 100_000);
        assert_eq!(s.poll_grant(ms(1)).unwrap().stream, StreamId(9));
        assert_eq!(all(&mut s, ms(1)), [2]);
    }

    #[test]
    fn what_waits_of_a_flow_moves_along_to_the_class_that_it_shows_to_be_of() {
        let mut s = unpaced();
        push(&mut s, ms(0), 1, Class::Web, 1, 1200);
        push(&mut s, ms(0), 2, Class::Bulk, 1, 1200);
        push(&mut s, ms(0), 3, Class::Streaming, 1, 1200);
        push(&mut s, ms(0), 2, Class::Interactive, 1, 1200);
        push(&mut s, ms(0), 1, Class::Background, 1, 1200);
        assert_eq!(all(&mut s, ms(1)), [2, 2, 3, 1, 1]);
        assert!(!s.has_datagrams() && s.turns.is_empty());
        push(&mut s, ms(1), 1, Class::Web, 1, 1200);
        push(&mut s, ms(1), 2, Class::Bulk, 1, 1200);
        assert_eq!(all(&mut s, ms(2)), [1, 2]);
    }

    #[test]
    fn datagrams_of_every_class_go_in_their_order() {
        let mut s = unpaced();
        // Three bits name a class where it crosses.
        let classes: Vec<Class> = (0..8).map(Class::from_bits).collect();
        for class in classes.iter().rev() {
            push(&mut s, ms(0), *class as u64, *class, 1, 100);
        }
        assert_eq!(all(&mut s, ms(1)), (0..8).collect::<Vec<_>>());
        assert_eq!(classes.last().map(|class| *class as usize + 1), Some(Class::COUNT));
        assert!(!s.has_datagrams() && s.turns.is_empty());
    }

    #[test]
    fn datagrams_keep_to_the_ceiling_of_their_class_and_hold_up_no_others() {
        let mut s = unpaced();
        let ceilings = [(Class::PeerToPeer, BitRate::kbit(100)), (Class::Bulk, BitRate(0))];
        s.set_ceilings(ms(0), &ceilings);
        // As much as a ceiling holds back for good is in nobody's way.
        (0..500).for_each(|_| push(&mut s, ms(0), 3, Class::Bulk, 2, 1200));
        let mut sent = [0; 4];
        let mut now = ms(0);
        for step in 0..1_000 {
            // 1 Mbit/s of each.
            push(&mut s, ms(10 * step), 1, Class::PeerToPeer, 1, 1200);
            push(&mut s, ms(10 * step), 2, Class::Background, 1, 1200);
            // It is asked when it says, and then there is something.
            now = now.max(ms(10 * step));
            while now < ms(10 * (step + 1)) {
                for flow in all(&mut s, now) {
                    sent[flow as usize] += 1200;
                }
                assert!(s.poll_grant(now).is_none());
                let Some(next) = s.next_wakeup(now) else { break };
                now = next.max(now + Duration::from_micros(100));
            }
        }
        // Ten seconds and what was saved up; before anything was asked for, one had no room.
        assert!((115_000..130_000).contains(&sent[1]), "{sent:?}");
        assert!(sent[2] >= 1_198_000, "{sent:?}");
        assert!(sent[3] <= 2_400, "what was saved up: {sent:?}");
        s.set_ceilings(now, &[]);
        assert!(next(&mut s, now).is_some());
    }

    /// So many calls, their packets 20 ms apart and spread evenly, on a link of this rate: what the account has of each packet, and
    /// how long the longest waited.
    fn calls(count: u64, rate: BitRate) -> (f64, Duration) {
        let pace = Pace { rate: Some(rate), ..Pace::default() };
        let mut s = Scheduler::new(ms(0), pace);
        let (mut longest, mut waiting, mut sent, mut now) = (ms(0), HashMap::new(), 0, ms(0));
        let gap = ms(20) / count as u32;
        for spoken in 0..count * 100 {
            let at = gap * spoken as u32;
            // It is asked when it says, and when there is something.
            while let Some(next) = s.next_wakeup(now).filter(|next| *next < at) {
                now = next.max(now);
                for flow in all(&mut s, now) {
                    longest = longest.max(now - waiting.remove(&flow).unwrap());
                    sent += 1;
                }
            }
            now = at;
            push(&mut s, now, spoken % count, Class::Expedited, 1, 23);
            waiting.insert(spoken % count, now);
            for flow in all(&mut s, now) {
                longest = longest.max(now - waiting.remove(&flow).unwrap());
                sent += 1;
            }
        }
        (s.handed_out().0 as f64 / sent as f64, longest)
    }

    #[test]
    fn speech_of_many_waits_a_moment_to_share_a_packet_where_the_link_is_slow() {
        let (alone, no_wait) = calls(1, BitRate::kbit(512));
        assert!((80.0..85.0).contains(&alone) && no_wait == ms(0), "{alone} {no_wait:?}");
        // It would seldom meet another.
        assert_eq!(calls(3, BitRate::kbit(512)), (alone, ms(0)));
        assert_eq!(calls(10, BitRate::kbit(40_000)), (alone, ms(0)), "there is room");
        let (shared, longest) = calls(10, BitRate::kbit(512));
        assert!(shared < 0.6 * alone && longest <= ms(4) && longest > ms(1), "{shared} {longest:?}");
    }

    #[test]
    fn who_waits_for_others_is_dropped_moved_and_late_as_others_are() {
        let mut s = Scheduler::new(ms(0), Pace { rate: Some(BitRate::kbit(512)), ..Pace::default() });
        for flow in 0..5 {
            push(&mut s, ms(0), flow, Class::Expedited, 1, 23);
        }
        // The first three speak before there are many.
        assert_eq!((all(&mut s, ms(0)), s.next_wakeup(ms(0))), (vec![0, 1, 2], Some(ms(4))));
        push(&mut s, ms(1), 4, Class::Interactive, 1, 23);
        assert_eq!(all(&mut s, ms(1)), [4, 4], "it is no speech any more");
        assert!(all(&mut s, ms(3)).is_empty());
        assert_eq!(all(&mut s, ms(4)), [3]);
        push(&mut s, ms(5), 3, Class::Expedited, 1, 23);
        assert!(all(&mut s, ms(200)).is_empty() && s.dropped_datagrams() == 1 && !s.has_datagrams());
    }

    #[test]
    fn nothing_is_kept_of_flows_that_are_over() {
        let mut s = unpaced();
        for number in 0..10_000 {
            push(&mut s, ms(number), number, Class::Web, number, 100);
            assert_eq!(next(&mut s, ms(number)), Some(number));
        }
        assert!(s.flows.known() < 5_000, "{}", s.flows.known());
        assert!(s.turns.is_empty());
    }
}

//! Datagrams of flows that wait for their turn, each flow a queue of its own. What is late is dropped, and so is what there is no
//! room for: of the least urgent first, and there of whoever has the most.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use farhop_units::BitRate;

use super::Place;
use super::spree::{Spree, Stage};
use super::turns::{Key, Who};
use crate::datagram::patience;
use crate::frame::Class;

/// Bytes that wait at most, of all flows: half a second of 2 Mbit/s, and a tenth of one where the link is quicker.
pub const MOST_WAITING: usize = 128 * 1024;
const QUICK: Duration = Duration::from_millis(100);
/// What a datagram that waits takes besides its bytes.
const ENTRY: usize = 64;
/// A flow that had nothing to send for so long begins anew.
const FORGOTTEN: Duration = Duration::from_secs(2);
/// Flows that are known before those with nothing to send are looked for.
const FEW: usize = 64;
/// What lasts less long than a page goes before its user's own streams of the class; what goes on and on takes turns with them.
const FIRST_URGENCY: u8 = 0;

#[derive(Debug)]
struct Waiting {
    datagram: Bytes,
    until: Duration,
}

#[derive(Debug)]
pub(super) struct Flow {
    place: Place,
    stage: Stage,
    spree: Spree,
    turn: u64,
    /// Bytes granted in this turn.
    granted: usize,
    queue: VecDeque<Waiting>,
    queued: usize,
    used: Duration,
}

impl Flow {
    /// Where it stands.
    pub(super) fn stands(&self) -> Place {
        let mut place = self.stage.place(self.place);
        if self.stage == Stage::Short {
            place.priority.urgency = FIRST_URGENCY;
        }
        place
    }

    pub(super) fn key(&self, number: u64) -> Key {
        let place = self.stands();
        (place.priority.urgency, !place.asked, self.turn, Who::Flow(number))
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.queue.is_empty()
    }

    fn pop(&mut self) -> Option<Waiting> {
        let gone = self.queue.pop_front()?;
        self.queued -= gone.datagram.len() + ENTRY;
        Some(gone)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: HashMap<u64, Flow>,
    /// Bytes that wait, by the class in which they stand.
    waiting: [usize; Class::COUNT],
    /// Datagrams that were dropped: too late, or no room.
    pub(super) dropped: u64,
    /// When it is worth looking for flows that are over.
    sweep_at: usize,
}

impl Flows {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(|waiting| *waiting == 0)
    }

    pub(super) fn flow(&self, number: u64) -> Option<&Flow> {
        self.flows.get(&number)
    }

    /// A flow that is known, and has nothing that stands anywhere, is at this place from now on. Gives where it stood, if that was elsewhere.
    pub(super) fn replace(&mut self, number: u64, place: Place) -> Option<Place> {
        let flow = self.flows.get_mut(&number).filter(|flow| flow.place != place)?;
        let before = flow.stands();
        flow.place = place;
        self.waiting[before.class as usize] -= flow.queued;
        self.waiting[flow.stands().class as usize] += flow.queued;
        Some(before)
    }

    /// Whether a flow is known to be at another place.
    pub(super) fn is_elsewhere(&self, number: u64, place: Place) -> bool {
        self.flows.get(&number).is_some_and(|flow| flow.place != place)
    }

    /// Adds a datagram of a flow of this place; `turn` is that of a flow which is new.
    pub(super) fn push(&mut self, now: Duration, number: u64, place: Place, turn: u64, datagram: Bytes) {
        let flow = self.flows.entry(number).or_insert_with(|| Flow {
            place,
            stage: Stage::Short,
            spree: Spree::unknown(),
            turn,
            granted: 0,
            queue: VecDeque::new(),
            queued: 0,
            used: now,
        });
        if flow.queue.is_empty() && flow.spree.goes_on(now) {
            flow.stage = Stage::Short;
        }
        let size = datagram.len() + ENTRY;
        flow.used = now;
        flow.queued += size;
        flow.queue.push_back(Waiting { datagram, until: now + patience(flow.place.class) });
        self.waiting[flow.stands().class as usize] += size;
    }

    /// The flow whose oldest datagram has to go, so that no more wait than a link of this rate may have: of those aside first.
    pub(super) fn crowd(&self, rate: Option<BitRate>, is_aside: impl Fn(u64) -> bool) -> Option<u64> {
        let quick = rate.map_or(0, |rate| usize::try_from(rate.bytes_in(QUICK).0).unwrap_or(usize::MAX));
        if self.waiting.iter().sum::<usize>() <= MOST_WAITING.max(quick) {
            return None;
        }
        let aside = self.flows.iter().filter(|(number, flow)| flow.is_ready() && is_aside(**number));
        if let Some((number, _)) = aside.max_by_key(|(number, flow)| (flow.queued, **number)) {
            return Some(*number);
        }
        let last = self.waiting.iter().rposition(|waiting| *waiting > 0)?;
        let of_last = || self.flows.iter().filter(|(_, flow)| flow.stands().class as usize == last);
        let mut by_user: HashMap<u64, usize> = HashMap::new();
        of_last().for_each(|(_, flow)| *by_user.entry(flow.place.user).or_default() += flow.queued);
        // The number makes it the same whenever it is done again.
        let most = by_user.into_iter().max_by_key(|(user, queued)| (*queued, *user));
        let (user, _) = most?;
        let own = of_last().filter(|(_, flow)| flow.place.user == user);
        own.max_by_key(|(number, flow)| (flow.queued, **number)).map(|(number, _)| *number)
    }

    /// Drops the oldest datagram of a flow.
    pub(super) fn drop_oldest(&mut self, number: u64) {
        if self.take(number).is_some() {
            self.dropped += 1;
        }
    }

    /// The oldest datagram of a flow that is not late; those that are late are dropped.
    pub(super) fn pop(&mut self, now: Duration, number: u64) -> Option<Bytes> {
        loop {
            let next = self.take(number)?;
            if next.until >= now {
                return Some(next.datagram);
            }
            self.dropped += 1;
        }
    }

    fn take(&mut self, number: u64) -> Option<Waiting> {
        let flow = self.flows.get_mut(&number)?;
        let before = flow.queued;
        let gone = flow.pop();
        self.waiting[flow.stands().class as usize] -= before - flow.queued;
        gone
    }

    /// A flow has sent so much more over a link of about this rate. With `turn` begins its next turn where this one, of `piece`
    /// bytes, is over.
    pub(super) fn sent(
        &mut self,
        now: Duration,
        number: u64,
        size: usize,
        rate: Option<BitRate>,
        (turn, piece): (u64, usize),
    ) {
        let Some(flow) = self.flows.get_mut(&number) else { return };
        let before = flow.stands().class;
        flow.used = now;
        flow.stage = flow.spree.sent(now, size as u64, rate);
        flow.granted += size;
        if flow.granted >= piece {
            (flow.turn, flow.granted) = (turn, 0);
        }
        let after = flow.stands().class;
        self.waiting[before as usize] -= flow.queued;
        self.waiting[after as usize] += flow.queued;
    }

    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.flows.len()
    }

    /// Forgets flows that have had nothing to send for a while; gives where they stood.
    pub(super) fn sweep(&mut self, now: Duration) -> Vec<Place> {
        if self.flows.len() < self.sweep_at.max(FEW) {
            return Vec::new();
        }
        let mut gone = Vec::new();
        self.flows.retain(|_, flow| {
            let stays = !flow.queue.is_empty() || now < flow.used + FORGOTTEN;
            if !stays {
                gone.push(flow.stands());
            }
            stays
        });
        self.sweep_at = 2 * self.flows.len();
        gone
    }
}

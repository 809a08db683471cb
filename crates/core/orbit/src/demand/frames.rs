//! Superframe by superframe: slots are given out, packets sent in them, fragment by fragment, and requests made. Two kinds of
//! events: a superframe begins, one of our slots begins.

use farhop_units::{BitRate, Bytes};
use std::collections::VecDeque;
use std::time::Duration;

use super::OnDemand;
use super::centre::Centre;
use super::terminal::Terminal;
use crate::direction::{Class, Outcome, Parcel};
use crate::{Leg, Rng};

/// Size of the packets of others.
const PACKET: u64 = 1000;

/// Superframes without a packet of ours that are played although it is late: by then the load of others is what it was.
const PLAYED: u64 = 2_000;

#[derive(Debug)]
struct Waiting<P> {
    left: u64,
    parcel: Parcel<P>,
}

/// The packets of one of our terminals, by class.
type Queues<P> = [VecDeque<Waiting<P>>; Class::ALL.len()];

/// A shared return link in use.
#[derive(Debug)]
pub(crate) struct Frames<P> {
    link: OnDemand,
    centre: Centre,
    /// Ours first, then those of others.
    terminals: Vec<Terminal>,
    queues: Vec<Queues<P>>,
    entering: VecDeque<(Duration, Parcel<P>)>,
    /// The superframe that begins next.
    frame: u64,
    /// Our slots of the present one: when each begins and ends, whose it is.
    slots: VecDeque<(Duration, Duration, usize)>,
    /// Bytes of requests that each of ours still sends in its slots of the present one.
    requests: Vec<u64>,
    out: VecDeque<Outcome<P>>,
    peak: Bytes,
    given: Bytes,
    /// Slots given to each of ours in the superframes of the last control round.
    lately: Vec<VecDeque<(u64, u32)>>,
    rng: Rng,
}

impl<P> Frames<P> {
    pub(crate) fn new(link: &OnDemand, rng: Rng) -> Self {
        let ours = usize::from(link.terminals.max(1));
        let all = ours + link.others.map_or(0, |others| usize::from(others.terminals));
        Frames {
            link: link.clone(),
            centre: Centre::new(all),
            terminals: (0..all).map(|_| Terminal::default()).collect(),
            queues: (0..ours).map(|_| Queues::default()).collect(),
            entering: VecDeque::new(),
            frame: 0,
            slots: VecDeque::new(),
            requests: vec![0; ours],
            out: VecDeque::new(),
            peak: Bytes(0),
            given: Bytes(0),
            lately: vec![VecDeque::new(); ours],
            rng,
        }
    }

    /// Takes a packet that reaches its terminal at `at`, no earlier than the one before.
    pub(crate) fn enter(&mut self, at: Duration, parcel: Parcel<P>) {
        self.entering.push_back((at, parcel));
    }

    /// One of our terminals will have so much to send soon, and may ask for it already; stands in place of what was announced before.
    pub(crate) fn announce(&mut self, terminal: u16, bytes: Bytes) {
        let (until, index) = (self.frame + 2 * self.link.round(), self.index(terminal));
        self.terminals[index].announce(bytes.0, until);
    }

    /// The same, said at `now` to the centre itself; `way` is the terminal's way to it, which is spared.
    pub(crate) fn foretell(&mut self, now: Duration, way: Duration, terminal: u16, bytes: Bytes) {
        // In slots' bytes, as terminals ask.
        let whole = bytes.0.div_ceil(self.link.payload()).saturating_mul(self.link.slot.0);
        let (from, index) = (self.link.soonest(now, way).max(self.frame), self.index(terminal));
        let ago = from.saturating_sub(self.frame);
        self.centre.hear(from, index, super::Request::Foretold(whole, ago));
    }

    /// What happens next by `now`; call until it gives `None`.
    pub(crate) fn poll(&mut self, now: Duration, leg: &Leg) -> Option<Outcome<P>> {
        loop {
            if let Some(outcome) = self.out.pop_front() {
                return Some(outcome);
            }
            self.skip(now);
            let [enters, begins, slot] = self.events();
            // What comes as a superframe begins is asked for in it, what comes as a slot begins rides in it.
            if enters.min(begins).min(slot) > now {
                return None;
            } else if enters <= begins && enters <= slot {
                if let Some((_, parcel)) = self.entering.pop_front() {
                    self.queue_up(parcel, leg);
                }
            } else if begins <= slot {
                self.begin(begins);
            } else if let Some((_, end, terminal)) = self.slots.pop_front() {
                self.fill(end, terminal);
            }
        }
    }

    /// When something happens next that a packet of ours waits for.
    pub(crate) fn next(&self) -> Option<Duration> {
        let [enters, begins, slot] = self.events();
        let waiting = self.terminals.iter().take(self.queues.len()).any(|terminal| terminal.backlog() > 0);
        let next = if waiting { enters.min(begins).min(slot) } else { enters };
        Some(next).filter(|at| *at < Duration::MAX)
    }

    /// Packets in here.
    pub(crate) fn len(&self) -> usize {
        self.entering.len() + self.queues.iter().flatten().map(VecDeque::len).sum::<usize>()
    }

    /// The largest backlog of one terminal since it was asked last.
    pub(crate) fn peak(&mut self) -> Bytes {
        std::mem::take(&mut self.peak)
    }

    /// The capacity given to our terminals since it was asked last.
    pub(crate) fn given(&mut self) -> Bytes {
        std::mem::take(&mut self.given)
    }

    /// What one of our terminals was given over the last control round, as packets see it; never less than its constant rate.
    pub(crate) fn granted(&self, terminal: u16) -> BitRate {
        let (round, link) = (self.link.round().max(1), &self.link);
        let since = self.frame.saturating_sub(round);
        let lately = self.lately[self.index(terminal)].iter().filter(|(frame, _)| *frame >= since);
        let bits = lately.map(|(_, slots)| u128::from(*slots)).sum::<u128>() * u128::from(link.payload()) * 8;
        let nanos = link.superframe.as_nanos().max(1) * u128::from(round);
        let mean = u64::try_from(bits * 1_000_000_000 / nanos).unwrap_or(u64::MAX);
        let constant =
            u128::from(link.entitlement.cra.0) * u128::from(link.payload()) / u128::from(link.slot.0.max(1));
        BitRate(mean.max(u64::try_from(constant).unwrap_or(u64::MAX)))
    }

    /// Lets everything go, those that wait longest first.
    pub(crate) fn release(self) -> impl Iterator<Item = Parcel<P>> {
        let waiting = self.queues.into_iter().flatten().flatten().map(|waiting| waiting.parcel);
        waiting.chain(self.entering.into_iter().map(|entering| entering.1))
    }

    /// When the next packet enters, superframe begins, slot of ours begins.
    fn events(&self) -> [Duration; 3] {
        let enters = self.entering.front().map_or(Duration::MAX, |first| first.0);
        let slot = self.slots.front().map_or(Duration::MAX, |first| first.0);
        [enters, self.begins(self.frame), slot]
    }

    fn begins(&self, frame: u64) -> Duration {
        let nanos = u64::try_from(self.link.superframe.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos.saturating_mul(frame))
    }

    /// Leaves out superframes in which nothing can happen, or nothing that shows.
    fn skip(&mut self, now: Duration) {
        let present =
            u64::try_from(now.as_nanos() / self.link.superframe.as_nanos().max(1)).unwrap_or(u64::MAX);
        let late = present.saturating_sub(self.frame);
        let ours = self.queues.len();
        if late < 2 || self.terminals.iter().take(ours).any(|terminal| terminal.backlog() > 0) {
            return;
        }
        // A packet that is about to enter is an event of its own time.
        if self.entering.front().is_some_and(|first| first.0 < self.begins(present)) {
            return;
        }
        let quiet = self.link.others.is_none()
            && self.centre.is_quiet()
            && self.terminals.iter().all(Terminal::is_quiet);
        let play = if quiet { 0 } else { PLAYED };
        if late > play {
            self.frame = present - play;
            self.slots.clear();
        }
    }

    /// Superframe `self.frame` begins at `now`.
    fn begin(&mut self, now: Duration) {
        let (frame, link) = (self.frame, &self.link);
        self.frame += 1;
        let ours = self.queues.len();
        if let Some(others) = link.others {
            let packets = others.rate.0 as f64 * link.superframe.as_secs_f64() / 8.0 / PACKET as f64;
            for terminal in self.terminals.iter_mut().skip(ours) {
                terminal.arrive((packets + self.rng.next_f64()).floor() as u64 * PACKET);
            }
        }
        let given = self.centre.give(link, frame);
        let all = u32::try_from(link.slots_of(link.capacity)).unwrap_or(u32::MAX).max(1);
        let turn = usize::try_from(frame % self.terminals.len().max(1) as u64).unwrap_or(0);
        let mut first = 0;
        self.slots.clear();
        for step in 0..given.len() {
            let index = (turn + step) % given.len();
            let Some(given) = given.get(index) else { continue };
            if index < ours {
                let lately = &mut self.lately[index];
                lately.push_back((frame, given.slots));
                if lately.len() as u64 > link.round() {
                    lately.pop_front();
                }
                self.given += Bytes(u64::from(given.slots) * link.slot.0);
                let place =
                    |slot: u32| now + link.superframe.mul_f64(f64::from(first + slot) / f64::from(all));
                self.slots.extend((0..given.slots).map(|slot| (place(slot), place(slot + 1), index)));
            }
            first += given.slots;
        }
        let mut asking = Vec::new();
        for (index, (terminal, given)) in self.terminals.iter_mut().zip(&given).enumerate() {
            terminal.given(u64::from(given.volume) * link.payload());
            let requests = terminal.requests(link, frame, given.slots);
            let beside = if given.slots > 0 { link.beside(requests.len()) } else { 0 };
            if let Some(own) = self.requests.get_mut(index) {
                *own = beside;
            }
            if !requests.is_empty() {
                asking.push((index, given.slots > 0, requests));
            }
            if index >= ours {
                terminal.sent((u64::from(given.slots) * link.payload()).saturating_sub(beside));
            }
        }
        self.ask(frame, asking);
    }

    /// Requests go to the centre, as far as they get there: who has slots sends them there, others as signalling allows.
    fn ask(&mut self, frame: u64, asking: Vec<(usize, bool, Vec<super::Request>)>) {
        let mut picked = Vec::new();
        for (_, has_slots, _) in &asking {
            let contends = self.link.signalling.contention.filter(|_| !has_slots);
            picked.push(contends.map(|slots| self.rng.next_u64() % u64::from(slots.max(1))));
        }
        for ((index, _, requests), slot) in asking.iter().zip(&picked) {
            let collides = slot.is_some() && picked.iter().filter(|other| *other == slot).count() > 1;
            if self.rng.chance(self.link.signalling.loss) || collides {
                continue;
            }
            for request in requests {
                self.centre.hear(frame + self.link.round(), *index, *request);
            }
        }
    }

    fn queue_up(&mut self, parcel: Parcel<P>, leg: &Leg) {
        let index = self.index(parcel.label.terminal);
        let waiting = Bytes(self.terminals[index].backlog()) + parcel.size;
        if waiting > leg.queue {
            self.out.push_back(Outcome::Dropped(parcel.size));
            return;
        }
        self.peak = self.peak.max(waiting);
        self.terminals[index].arrive(parcel.size.0);
        let class = parcel.label.class as usize;
        self.queues[index][class].push_back(Waiting { left: parcel.size.0, parcel });
    }

    /// Sends in a slot of this terminal what finds room, more urgent classes first; what does not is continued in the next slot.
    fn fill(&mut self, end: Duration, terminal: usize) {
        let requests = self.requests[terminal].min(self.link.slot.0);
        self.requests[terminal] -= requests;
        let mut room = self.link.slot.0 - requests;
        while room > self.link.header.0 {
            let Some(queue) = self.queues[terminal].iter_mut().find(|queue| !queue.is_empty()) else {
                return;
            };
            let Some(first) = queue.front_mut() else { return };
            room -= self.link.header.0;
            let part = room.min(first.left);
            (room, first.left) = (room - part, first.left - part);
            self.terminals[terminal].sent(part);
            if first.left == 0
                && let Some(done) = queue.pop_front()
            {
                self.out.push_back(Outcome::Sent { at: end, parcel: done.parcel });
            }
        }
    }

    /// The place of a terminal of ours; those that there are not are the last one.
    fn index(&self, terminal: u16) -> usize {
        usize::from(terminal).min(self.queues.len() - 1)
    }
}

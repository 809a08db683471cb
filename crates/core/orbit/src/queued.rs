//! A queue before a serialiser, event by event: for all that the closed form of `direction` cannot say, because a packet's
//! fate or time is known only when its turn comes.

use farhop_units::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

use crate::codel::{self, Law};
use crate::direction::{Outcome, Parcel};
use crate::supply::Serialiser;
use crate::{Discipline, Leg};

#[derive(Debug)]
struct Waiting<P> {
    came: Duration,
    parcel: Parcel<P>,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Queued<P> {
    serialiser: Serialiser,
    law: Law,
    /// On their way to the queue; times never fall.
    entering: VecDeque<Waiting<P>>,
    queue: VecDeque<Waiting<P>>,
    /// What the serialiser sends, and when it is done.
    sending: Option<(Duration, Parcel<P>)>,
    /// In `queue` and `sending`.
    backlog: Bytes,
    peak: Bytes,
    /// Results not yet taken.
    out: VecDeque<Outcome<P>>,
}

impl<P> Queued<P> {
    pub(crate) fn new(leg: &Leg) -> Self {
        Queued {
            serialiser: Serialiser::new(leg),
            law: Law::default(),
            entering: VecDeque::new(),
            queue: VecDeque::new(),
            sending: None,
            backlog: Bytes(0),
            peak: Bytes(0),
            out: VecDeque::new(),
        }
    }

    /// Takes a packet that reaches the queue at `at`, no earlier than the one before.
    pub(crate) fn enter(&mut self, at: Duration, parcel: Parcel<P>) {
        self.entering.push_back(Waiting { came: at, parcel });
    }

    /// What happens next by `now`; call until it gives `None`.
    pub(crate) fn poll(&mut self, now: Duration, leg: &Leg) -> Option<Outcome<P>> {
        loop {
            if let Some(outcome) = self.out.pop_front() {
                return Some(outcome);
            }
            if self.next()? > now {
                return None;
            }
            let done = self.sending.as_ref().map_or(Duration::MAX, |sending| sending.0);
            let enters = self.entering.front().map_or(Duration::MAX, |first| first.came);
            // What is done makes room for what comes at the same moment.
            if done <= enters {
                if let Some((at, parcel)) = self.sending.take() {
                    self.backlog = self.backlog - parcel.size;
                    self.out.push_back(Outcome::Sent { at, parcel });
                    self.start(at, leg);
                }
            } else if let Some(waiting) = self.entering.pop_front() {
                self.queue_up(waiting, leg);
            }
        }
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Duration> {
        let done = self.sending.as_ref().map(|sending| sending.0);
        let enters = self.entering.front().map(|first| first.came);
        done.into_iter().chain(enters).min().filter(|at| *at < Duration::MAX)
    }

    /// Packets in here.
    pub(crate) fn len(&self) -> usize {
        self.entering.len() + self.queue.len() + usize::from(self.sending.is_some())
    }

    /// The largest backlog since it was asked last, the packet being sent included.
    pub(crate) fn peak(&mut self) -> Bytes {
        std::mem::replace(&mut self.peak, self.backlog)
    }

    /// Lets everything go, in order.
    pub(crate) fn release(self) -> impl Iterator<Item = Parcel<P>> {
        let sending = self.sending.into_iter().map(|sending| sending.1);
        sending.chain(self.queue.into_iter().chain(self.entering).map(|waiting| waiting.parcel))
    }

    fn queue_up(&mut self, mut waiting: Waiting<P>, leg: &Leg) {
        let (at, size) = (waiting.came, waiting.parcel.size);
        if self.backlog + size > leg.queue {
            self.out.push_back(Outcome::Dropped(size));
            return;
        }
        if let Discipline::Mark(above) = leg.discipline {
            waiting.parcel.marked |= waiting.parcel.label.ecn_capable && self.backlog > above;
        }
        self.backlog += size;
        self.peak = self.peak.max(self.backlog);
        self.queue.push_back(waiting);
        if self.sending.is_none() {
            self.start(at, leg);
        }
    }

    /// Begins with the next packet that the discipline lets pass.
    fn start(&mut self, now: Duration, leg: &Leg) {
        let Queued { law, queue, backlog, out, .. } = self;
        let mut head = Head { queue, backlog, out, ecn: false };
        let next = match &leg.discipline {
            Discipline::CoDel(codel) => {
                head.ecn = codel.ecn;
                law.dequeue(codel, now, &mut head)
            }
            Discipline::DropTail | Discipline::Mark(_) => head.queue.pop_front(),
        };
        self.sending = next.map(|Waiting { parcel, .. }| (self.serialiser.finish(now, parcel.size), parcel));
    }
}

/// The waiting packets as the law of controlled delay sees them, while none is being sent.
struct Head<'a, P> {
    queue: &'a mut VecDeque<Waiting<P>>,
    /// Of all that wait or were taken out and not yet dropped.
    backlog: &'a mut Bytes,
    out: &'a mut VecDeque<Outcome<P>>,
    ecn: bool,
}

impl<P> codel::Queue for Head<'_, P> {
    type Item = Waiting<P>;

    fn pop(&mut self) -> Option<(Waiting<P>, Duration, Bytes)> {
        let first = self.queue.pop_front()?;
        let (came, left) = (first.came, *self.backlog - first.parcel.size);
        Some((first, came, left))
    }

    fn drop_or_mark(&mut self, mut waiting: Waiting<P>) -> Option<Waiting<P>> {
        if self.ecn && waiting.parcel.label.ecn_capable {
            waiting.parcel.marked = true;
            return Some(waiting);
        }
        *self.backlog = *self.backlog - waiting.parcel.size;
        self.out.push_back(Outcome::Dropped(waiting.parcel.size));
        None
    }
}

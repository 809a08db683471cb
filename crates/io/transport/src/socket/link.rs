//! A satellite link inside the process: two sockets joined by the path model of `core/orbit`, so that
//! `farhop local` and tests cross the same QUIC code as two machines would. It moves datagrams at the
//! times that the model says and must not decide any of them itself. Time is tokio's, so a paused
//! runtime plays it in virtual time.

mod socket;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use farhop_orbit::{Counters, Path, Profile, Way};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Meter;
use super::inbox::{INBOX, Inbox};
use crate::path::End;
pub use socket::LinkSocket;
use socket::MTU;

/// The place of what is `end`'s.
fn index(end: End) -> usize {
    match end {
        End::Ground => 0,
        End::Remote => 1,
    }
}

/// The way on which `end` sends.
fn way(end: End) -> Way {
    match end {
        End::Ground => Way::Forward,
        End::Remote => Way::Return,
    }
}

fn receiver(way: Way) -> End {
    match way {
        Way::Forward => End::Remote,
        Way::Return => End::Ground,
    }
}

/// Handle on a link, to watch it and to disturb it.
#[derive(Debug, Clone)]
pub struct Link(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoch: Instant,
    state: Mutex<State>,
    /// Rings when the driver should look at the clock again.
    rearm: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    path: Path<Bytes>,
    /// By [`End::index`] of who receives.
    inboxes: [Inbox; 2],
    /// When the driver will wake up by itself.
    armed: Option<Duration>,
}

/// A link of this `profile`; equal seeds lose the same packets. Gives the handle, ground's socket and
/// the remote's. Must be called inside a tokio runtime.
pub fn pair(profile: &Profile, seed: u64) -> (Link, Arc<LinkSocket>, Arc<LinkSocket>) {
    let rearm = Arc::new(Notify::new());
    let shared = Arc::new(Shared {
        epoch: Instant::now(),
        state: Mutex::new(State { path: Path::new(profile, seed), inboxes: Default::default(), armed: None }),
        rearm: rearm.clone(),
    });
    tokio::spawn(drive(Arc::downgrade(&shared), rearm));
    let socket = |end| Arc::new(LinkSocket { end, shared: shared.clone(), meter: Meter::default() });
    (Link(shared.clone()), socket(End::Ground), socket(End::Remote))
}

/// Delivers what is due, until both sockets and the handle are gone.
async fn drive(shared: Weak<Shared>, rearm: Arc<Notify>) {
    loop {
        let next = match shared.upgrade() {
            Some(shared) => shared.deliver_and_arm(),
            None => return,
        };
        let rung = rearm.notified();
        match next {
            Some(at) => tokio::select! {
                () = tokio::time::sleep_until(at) => (),
                () = rung => (),
            },
            None => rung.await,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.rearm.notify_one();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave a half-moved datagram behind: every step is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `change` act on the state and delivers what is due.
    fn with<T>(&self, change: impl FnOnce(&mut State, Duration) -> T) -> T {
        let now = self.now();
        let mut state = self.lock();
        let result = change(&mut state, now);
        let woken = state.deliver(now);
        let sooner = match (state.path.next_wakeup(), state.armed) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        drop(state);
        if sooner {
            self.rearm.notify_one();
        }
        woken.into_iter().for_each(Waker::wake);
        result
    }

    fn deliver_and_arm(&self) -> Option<Instant> {
        let mut state = self.lock();
        let woken = state.deliver(self.now());
        state.armed = state.path.next_wakeup();
        let next = state.armed.map(|due| self.epoch + due);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        next
    }
}

impl State {
    /// Moves what is due into the inboxes; gives the tasks to be woken once the lock is released.
    fn deliver(&mut self, now: Duration) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some((way, arrived)) = self.path.poll_transmit(now) {
            let inbox = &mut self.inboxes[index(receiver(way))];
            woken.extend(inbox.push(arrived.packet));
        }
        for sender in [End::Ground, End::Remote] {
            self.release_writers(sender, &mut woken);
        }
        woken
    }

    /// Adds who waits to send from `sender` to `woken` if there is room now.
    fn release_writers(&mut self, sender: End, woken: &mut Vec<Waker>) {
        let waiting = !self.inboxes[index(sender.opposite())].writers.is_empty();
        if waiting && self.has_room(sender) {
            woken.append(&mut self.inboxes[index(sender.opposite())].writers);
        }
    }

    /// Whether `sender` may send. A link with a rate drops what its queue cannot hold; one without
    /// would take everything, so there the sender waits for the receiver.
    fn has_room(&self, sender: End) -> bool {
        let direction = self.path.direction(way(sender));
        let unread = self.inboxes[index(sender.opposite())].bytes;
        direction.leg().rate.is_some() || unread + direction.under_way() * MTU < INBOX / 2
    }
}

impl Link {
    /// Cuts both directions: what is sent or would arrive from now on is lost.
    pub fn cut(&self) {
        self.0.with(|state, now| state.path.cut(now));
    }

    /// Cuts one direction, as a terminal that receives but may not send sees it.
    pub fn cut_way(&self, way: Way) {
        self.0.with(|state, now| state.path.direction_mut(way).cut(now));
    }

    /// Ends a cut of either kind.
    pub fn restore(&self) {
        self.0.with(|state, now| state.path.restore(now));
    }

    /// Goes over to another profile while datagrams are under way.
    pub fn switch(&self, profile: &Profile) {
        self.0.with(|state, now| state.path.switch(now, profile));
        // What was due late may be due soon now.
        self.0.rearm.notify_one();
    }

    /// Counters of one way since the start or the last [`Link::take_counters`], IP and UDP headers
    /// included.
    pub fn counters(&self, way: Way) -> Counters {
        self.0.with(|state, _| state.path.counters(way))
    }

    /// Reads the counters of one way and starts them afresh.
    pub fn take_counters(&self, way: Way) -> Counters {
        self.0.with(|state, _| state.path.take_counters(way))
    }

    /// Datagrams that arrived and found the receiver's buffer full.
    pub fn overflowed(&self, way: Way) -> u64 {
        self.0.with(|state, _| state.inboxes[index(receiver(way))].overflowed)
    }
}

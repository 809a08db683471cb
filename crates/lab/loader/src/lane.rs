//! What waits for connections to one origin, and how many of these there are.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::Notify;

use crate::course::locked;

/// See the module.
#[derive(Default)]
pub(crate) struct Lane {
    /// Told when something more waits.
    more: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<usize>,
    /// Connections that stand or are being made, and those of them with requests under way.
    workers: usize,
    busy: usize,
}

impl Lane {
    /// An object waits, ahead of all others or behind them.
    pub(crate) fn push(&self, object: usize, first: bool) {
        {
            let mut state = locked(&self.state);
            if first { state.waiting.push_front(object) } else { state.waiting.push_back(object) }
        }
        self.more.notify_waiters();
    }

    /// How many connections are to be begun for what waits, where there may be `most`: they count from now on.
    pub(crate) fn begin(&self, most: usize) -> usize {
        let mut state = locked(&self.state);
        let wanted = most.min(state.busy + state.waiting.len());
        let begin = wanted.saturating_sub(state.workers);
        state.workers += begin;
        begin
    }

    /// The next objects for a connection, `count` at most, which is busy with them from now on.
    pub(crate) async fn take(&self, count: usize) -> Vec<usize> {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            more.as_mut().enable(); // what comes from here on is not missed
            {
                let mut state = locked(&self.state);
                if !state.waiting.is_empty() {
                    // Others that stand idle or are being made get their share.
                    let others = (state.workers - state.busy).max(1);
                    let share = state.waiting.len().div_ceil(others);
                    let count = count.clamp(1, share);
                    state.busy += 1;
                    return state.waiting.drain(..count).collect();
                }
            }
            more.await;
        }
    }

    /// A connection has nothing under way any more.
    pub(crate) fn rest(&self) {
        locked(&self.state).busy -= 1;
    }

    /// A connection is there no more.
    pub(crate) fn leave(&self) {
        locked(&self.state).workers -= 1;
    }

    /// The same for one that brought nothing: what waited first goes with it.
    pub(crate) fn leave_with_first(&self) -> Option<usize> {
        let mut state = locked(&self.state);
        state.workers -= 1;
        state.waiting.pop_front()
    }
}

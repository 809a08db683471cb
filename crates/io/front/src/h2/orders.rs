//! What clients say of the order of responses under way (RFC 9218 §7.1): the sieve reads it, whoever answers the request
//! hears of it.

use bytes::Bytes;
use http::HeaderValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The orders of one connection.
pub(super) struct Orders {
    /// How many requests may be under way.
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last stream that the application has been given.
    given: u32,
    under_way: HashMap<u32, watch::Sender<Option<HeaderValue>>>,
    /// Of streams that the application has yet to be given.
    early: BTreeMap<u32, HeaderValue>,
}

/// What is said of one request from now on.
pub(crate) type Order = watch::Receiver<Option<HeaderValue>>;

impl Orders {
    pub(super) fn new(most: usize) -> Orders {
        Orders { most, state: Mutex::default() }
    }

    /// The client gives an open stream this priority. Of one that has ended nothing is kept.
    pub(super) fn say(&self, stream: u32, priority: Bytes) {
        let Ok(priority) = HeaderValue::from_maybe_shared(priority) else { return };
        let mut state = self.lock();
        if let Some(order) = state.under_way.get(&stream) {
            order.send_replace(Some(priority));
        } else if stream > state.given && (state.early.len() < self.most || state.early.contains_key(&stream))
        {
            state.early.insert(stream, priority);
        }
    }

    /// The application is given a request, and may look for what is said of it until it is forgotten.
    pub(super) fn give(&self, stream: u32) -> Order {
        let mut state = self.lock();
        // RFC 9113 §5.1.1: numbers rise; what came before and was not given never will be.
        state.given = stream;
        state.early = state.early.split_off(&stream);
        let (sender, mut order) = watch::channel(state.early.remove(&stream));
        order.mark_changed();
        state.under_way.insert(stream, sender);
        order
    }

    /// The request is answered.
    pub(super) fn forget(&self, stream: u32) {
        self.lock().under_way.remove(&stream);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(order: &mut Order) -> Option<HeaderValue> {
        order.has_changed().unwrap_or(false).then(|| order.borrow_and_update().clone()).flatten()
    }

    #[test]
    fn what_is_said_of_a_request_is_heard_by_who_answers_it() {
        let orders = Orders::new(2);
        orders.say(5, Bytes::from_static(b"u=1"));
        let (mut third, mut fifth) = (orders.give(3), orders.give(5));
        assert_eq!((heard(&mut third), heard(&mut fifth)), (None, Some(HeaderValue::from_static("u=1"))));
        orders.say(3, Bytes::from_static(b"u=6"));
        orders.say(3, Bytes::from_static(b"u=0, i"));
        orders.say(3, Bytes::from_static(b"no\nvalue"));
        assert_eq!(heard(&mut third), Some(HeaderValue::from_static("u=0, i")));
        assert_eq!((heard(&mut third), heard(&mut fifth)), (None, None), "each is told its own, once");
    }

    #[test]
    fn nothing_is_kept_of_what_has_ended_and_little_of_what_never_comes() {
        let orders = Orders::new(2);
        drop(orders.give(3));
        orders.forget(3);
        for stream in [1, 3, 5, 7, 9, 5] {
            orders.say(stream, Bytes::from_static(b"u=1"));
        }
        let kept = |orders: &Orders| orders.lock().early.keys().copied().collect::<Vec<_>>();
        assert_eq!(kept(&orders), [5, 7]);
        drop(orders.give(9));
        assert!(kept(&orders).is_empty() && orders.lock().under_way.len() == 1);
    }
}

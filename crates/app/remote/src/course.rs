//! A request whose browser thinks better of its priority while it is under way (RFC 9218 §7): an image that has come into
//! view, say. What ground has yet to send of the answer, asked for or promised, goes out in the new order.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_front::{Priorities, RequestBody, Responder};
use farhop_htotp::frame::Priority;
use farhop_transport::hop::Hop;

use crate::Remote;
use crate::desk::Wire;
use crate::exchange::Exchange;
use crate::{priority, promising};

/// Where the answer to a request comes from, and what its browser has said of it since.
#[derive(Default)]
pub(crate) struct Course(Mutex<State>);

#[derive(Default)]
struct State {
    said: Option<Priority>,
    /// What ground knows.
    told: Option<Priority>,
    way: Option<Way>,
}

#[derive(Clone)]
enum Way {
    /// Asked for under this number.
    Asked(Hop, u64),
    Promised(Wire),
}

impl Exchange {
    /// Answers the request, as urgently as its browser says from one moment to the next.
    pub(crate) async fn serve(self, remote: Arc<Remote>, body: RequestBody, responder: Responder) {
        let (course, asked_at) = (Arc::clone(&self.course), Arc::clone(&remote));
        let priorities = responder.priorities();
        tokio::select! {
            // What is answered at once needs no order.
            biased;
            () = self.answer(remote, body, responder) => {}
            never = course.follow(&asked_at, priorities) => match never {},
        }
    }
}

impl Course {
    async fn follow(&self, remote: &Remote, mut priorities: Priorities) -> Infallible {
        loop {
            let Some(priority) = priority::of_text(&priorities.next().await) else { continue };
            let way = {
                let mut state = self.lock();
                state.said = Some(priority);
                let is_news = state.told.replace(priority) != Some(priority);
                state.way.clone().filter(|_| is_news)
            };
            tell(remote, way, priority);
        }
    }

    /// Somebody else waits for it as well, with this priority: it comes no later than it would for them.
    pub(crate) fn hurry(&self, remote: &Remote, priority: Priority) {
        let way = {
            let mut state = self.lock();
            let is_news = state.told.is_none_or(|told| priority.urgency < told.urgency);
            if is_news {
                state.told = Some(priority);
            }
            state.way.clone().filter(|_| is_news)
        };
        tell(remote, way, priority);
    }

    /// It is asked for; gives the priority to ask with, which is `first` unless the browser has changed its mind.
    pub(crate) fn asked(&self, hop: &Hop, exchange: u64, first: Priority) -> Priority {
        let mut state = self.lock();
        state.way = Some(Way::Asked(hop.clone(), exchange));
        let priority = state.said.unwrap_or(first);
        state.told = Some(priority);
        priority
    }

    /// A promise answers it; gives what ground is to be told of it: `wanted`, unless the browser has changed its mind.
    pub(crate) fn promised(&self, wire: Wire, wanted: Option<(Wire, Priority)>) -> Option<(Wire, Priority)> {
        let mut state = self.lock();
        state.way = Some(Way::Promised(wire));
        let told = state.said.map(|said| (wire, said)).or(wanted);
        state.told = told.map(|(_, priority)| priority);
        told
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells ground how urgent it is from now on.
fn tell(remote: &Remote, way: Option<Way>, priority: Priority) {
    match way {
        Some(Way::Asked(hop, exchange)) => hop.reorder(exchange, priority),
        Some(Way::Promised(wire)) => promising::tell_wanted(remote, Some((wire, priority))),
        None => {}
    }
}

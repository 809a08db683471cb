//! What is on its way to users of one remote, so that what anyone may have is not sent to others of them as well: there they wait
//! for the first (`farhop_bundle::Likeness`), or find it held. Pure: told the time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use farhop_bundle::Likeness;
use farhop_freshness::{Scope, Stored, Verdict};
use farhop_squeeze::Policy;
use http::{HeaderMap, Method};
use tokio::sync::watch;

/// What is remembered at a time. What is beyond is sent to each.
const MOST: usize = 4096;
/// What is over is forgotten whenever so many more are remembered.
const PURGE: usize = 256;
/// Freshness that must be left, besides a round trip, and for how long what has been sent counts until the remote's own word of it
/// comes: words and requests are on the way for some time.
const MARGIN: Duration = Duration::from_secs(10);

/// See the module. Times are since any fixed start.
#[derive(Default)]
pub(crate) struct Passing {
    all: Mutex<HashMap<Passed, Under>>,
}

/// Under what it is found: how images are treated is part of what crosses.
type Passed = (Likeness, Policy);

struct Under {
    state: watch::Sender<State>,
    /// When the remote will have said what it holds, once all of it is sent. Until then it is its [`Pass`]'s.
    told: Option<Duration>,
}

#[derive(Clone)]
enum State {
    /// The origin has not answered.
    Awaited,
    /// This is on its way: anyone may have it.
    Anyones(Arc<Stored>),
    /// It is for its user alone, or will not come.
    Own,
}

/// One response on its way, until this is dropped: if that is before all of it is sent, others have nothing of it.
pub(crate) struct Pass {
    passing: Arc<Passing>,
    passed: Passed,
}

/// What there is on its way for a request.
pub(crate) enum Found {
    /// What will answer it.
    Coming,
    /// Nobody knows yet whether it will.
    Awaited(Awaited),
    /// Nothing that does.
    Nothing,
}

/// Says when the origin has answered somebody else.
pub(crate) struct Awaited(watch::Receiver<State>);

impl Awaited {
    /// Completes then.
    pub(crate) async fn over(mut self) {
        // An end that is gone has nothing more to say.
        let _ = self.0.wait_for(|state| !matches!(state, State::Awaited)).await;
    }
}

impl Passing {
    fn lock(&self) -> MutexGuard<'_, HashMap<Passed, Under>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is on its way of this, for a request with these fields, over a hop with this round trip.
    pub(crate) fn find(
        &self,
        likeness: &Likeness,
        policy: Policy,
        request: &HeaderMap,
        now: Duration,
        round_trip: Duration,
    ) -> Found {
        let all = self.lock();
        let passed = (likeness.clone(), policy);
        let Some(under) = all.get(&passed).filter(|under| under.told.is_none_or(|told| now < told)) else {
            return Found::Nothing;
        };
        match &*under.state.borrow() {
            State::Awaited => Found::Awaited(Awaited(under.state.subscribe())),
            State::Anyones(stored) if answers(stored, request, round_trip) => Found::Coming,
            State::Anyones(_) | State::Own => Found::Nothing,
        }
    }

    /// The origin is asked for this; `None` where something like it is under way already.
    pub(crate) fn begin(self: &Arc<Self>, likeness: Likeness, policy: Policy, now: Duration) -> Option<Pass> {
        let mut all = self.lock();
        if all.len() % PURGE == PURGE - 1 {
            all.retain(|_, under| under.told.is_none_or(|told| now < told));
        }
        let passed = (likeness, policy);
        let is_under_way = all.get(&passed).is_some_and(|under| under.told.is_none_or(|told| now < told));
        if is_under_way || all.len() >= MOST {
            return None;
        }
        all.insert(passed.clone(), Under { state: watch::Sender::new(State::Awaited), told: None });
        Some(Pass { passing: Arc::clone(self), passed })
    }
}

/// Whether the remote will answer this request with what it is sent, and still when it is asked.
fn answers(stored: &Stored, request: &HeaderMap, round_trip: Duration) -> bool {
    let later = SystemTime::now() + round_trip + MARGIN;
    stored.answers(request) && stored.verdict(&Method::GET, request, Scope::Shared, later) == Verdict::Fresh
}

impl Pass {
    /// The origin has answered; `anyones` is what the remote will keep for anyone, if it will.
    pub(crate) fn answered(&self, anyones: Option<Stored>) {
        let state = anyones.map_or(State::Own, |stored| State::Anyones(Arc::new(stored)));
        if let Some(under) = self.passing.lock().get(&self.passed) {
            under.state.send_replace(state);
        }
    }

    /// All of it has been sent.
    pub(crate) fn sent(self, now: Duration, round_trip: Duration) {
        if let Some(under) = self.passing.lock().get_mut(&self.passed) {
            under.told = Some(now + 2 * round_trip + MARGIN);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut all = self.passing.lock();
        let is_broken_off = all.get(&self.passed).is_some_and(|under| under.told.is_none());
        if is_broken_off && let Some(under) = all.remove(&self.passed) {
            under.state.send_replace(State::Own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue, StatusCode};
    use url::Url;

    const START: Duration = Duration::from_secs(100);
    const RTT: Duration = Duration::from_millis(600);

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        fields.iter().map(field).collect()
    }

    fn like() -> Likeness {
        Likeness::of(&Url::parse("http://a.test/a.js").unwrap(), &HeaderMap::new()).unwrap()
    }

    fn stored(response: &[(&'static str, &'static str)]) -> Option<Stored> {
        let now = SystemTime::now();
        Some(Stored::new(&HeaderMap::new(), StatusCode::OK, &fields(response), now, now))
    }

    fn is_coming(passing: &Passing, request: &[(&'static str, &'static str)], now: Duration) -> bool {
        matches!(passing.find(&like(), Policy::Gentle, &fields(request), now, RTT), Found::Coming)
    }

    #[test]
    fn what_is_being_sent_answers_others_until_the_remote_has_told_of_it() {
        let passing = Arc::new(Passing::default());
        let pass = passing.begin(like(), Policy::Gentle, START).unwrap();
        assert!(!is_coming(&passing, &[], START) && passing.begin(like(), Policy::Gentle, START).is_none());
        pass.answered(stored(&[("cache-control", "max-age=600"), ("vary", "user-agent")]));
        assert!(is_coming(&passing, &[], START));
        assert!(!is_coming(&passing, &[("user-agent", "another")], START), "it varies by that");
        let other = passing.find(&like(), Policy::Identity, &HeaderMap::new(), START, RTT);
        assert!(matches!(other, Found::Nothing), "who has images as they are");
        pass.sent(START, RTT);
        assert!(is_coming(&passing, &[], START + MARGIN));
        assert!(!is_coming(&passing, &[], START + MARGIN + 2 * RTT));
        assert!(passing.begin(like(), Policy::Gentle, START + MARGIN + 2 * RTT).is_some());
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_it_is_for_one_alone_or_breaks_off() {
        let passing = Arc::new(Passing::default());
        for breaks_off in [true, false] {
            let pass = passing.begin(like(), Policy::Gentle, START).unwrap();
            let found = passing.find(&like(), Policy::Gentle, &HeaderMap::new(), START, RTT);
            let Found::Awaited(awaited) = found else { panic!("nobody knows yet") };
            match breaks_off {
                true => drop(pass),
                false => pass.answered(None),
            }
            awaited.over().await;
            assert!(!is_coming(&passing, &[], START));
        }
    }

    #[test]
    fn what_will_soon_be_stale_is_sent_to_each() {
        let passing = Arc::new(Passing::default());
        let pass = passing.begin(like(), Policy::Gentle, START).unwrap();
        pass.answered(stored(&[("cache-control", "max-age=10")]));
        assert!(!is_coming(&passing, &[], START));
    }
}

//! What a remote holds, as far as ground knows: by the remote's own word, and by what was pushed to it whole. Only what
//! is surely fresh when a promise would arrive counts. Pure.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use farhop_bundle::{PRIVATE_TO, unfamiliar};
use farhop_freshness::{ResponseDirectives, Scope, Stored, storable};
use farhop_htotp::mirror::{Bound, Entry, Word, fingerprint};
use farhop_htotp::{RequestHead, ResponseHead};
use http::Method;
use http::header::{self, HeaderMap, HeaderName};
use url::{Position, Url};

/// Entries remembered of a remote; the oldest go first.
const MOST: usize = 50_000;
/// Pushes that count as held until the remote's word comes, and for how long they do.
const MOST_PUSHED: usize = 4_096;
const UNTIL_WORD: Duration = Duration::from_secs(60);
/// Freshness that must be left, besides a round trip: words and requests are on the way for some time.
const MARGIN: Duration = Duration::from_secs(10);

/// The mirror of one remote's repository. Times are since any fixed start.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// By number, so that the oldest goes first.
    entries: BTreeMap<u64, u64>,
    /// Fingerprint → the newest entry that has it, fresh until.
    told: HashMap<u64, (u64, Duration)>,
    /// Fingerprint → fresh until.
    pushed: HashMap<u64, Duration>,
    /// Which sets of fields occur, by their bits: under each of them a request has a fingerprint.
    sets: [bool; Bound::SETS],
}

impl Default for Mirror {
    fn default() -> Self {
        Mirror {
            entries: BTreeMap::new(),
            told: HashMap::new(),
            pushed: HashMap::new(),
            sets: [false; Bound::SETS],
        }
    }
}

impl Mirror {
    /// Takes the remote's word in.
    pub(crate) fn hear(&mut self, word: Word, now: Duration) {
        match word {
            Word::Reset => {
                self.entries.clear();
                self.told.clear();
            }
            Word::Stored(entries) => entries.into_iter().for_each(|entry| self.store(entry, now)),
            Word::Evicted(numbers) => numbers.iter().for_each(|number| self.forget(*number)),
            // Of bodies, whatever they answer: `bases`.
            Word::Holds(_) | Word::Lacks(_) => {}
        }
    }

    fn store(&mut self, entry: Entry, now: Duration) {
        self.forget(entry.number);
        if self.entries.len() >= MOST
            && let Some((oldest, _)) = self.entries.first_key_value()
        {
            self.forget(*oldest);
        }
        self.pushed.remove(&entry.fingerprint);
        self.sets[usize::from(entry.bound.bits())] = true;
        self.entries.insert(entry.number, entry.fingerprint);
        let until = now.saturating_add(Duration::from_secs(entry.fresh_s));
        // Listings tell the newest first.
        let newest = self.told.get(&entry.fingerprint).is_none_or(|(number, _)| *number < entry.number);
        if newest {
            self.told.insert(entry.fingerprint, (entry.number, until));
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(fingerprint) = self.entries.remove(&number)
            && self.told.get(&fingerprint).is_some_and(|(newest, _)| *newest == number)
        {
            self.told.remove(&fingerprint);
        }
    }

    /// Entries that the remote has told of and that are not gone.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A push of `response` to `request` is complete: the remote holds it, unless it says otherwise.
    pub(crate) fn pushed(
        &mut self,
        user: u64,
        request: &RequestHead,
        response: &ResponseHead,
        now: Duration,
    ) {
        let Some((bound, fresh)) = kept_as(&request.fields, response) else { return };
        let Ok(url) = Url::parse(&request.url()) else { return };
        if self.pushed.len() >= MOST_PUSHED {
            self.pushed.retain(|_, until| *until > now);
        }
        if self.pushed.len() < MOST_PUSHED {
            self.sets[usize::from(bound.bits())] = true;
            let key = fingerprint(Some(user), without_fragment(&url), bound, &request.fields);
            self.pushed.insert(key, now + fresh.min(UNTIL_WORD + MARGIN));
        }
    }

    /// Whether the remote will answer this request of `user` from what it holds, for at least a round trip and some
    /// seconds from now.
    pub(crate) fn holds_fresh(
        &self,
        user: u64,
        url: &Url,
        request: &HeaderMap,
        now: Duration,
        round_trip: Duration,
    ) -> bool {
        let needed = now + round_trip + MARGIN;
        let url = without_fragment(url);
        let sets = self.sets.iter().enumerate().filter(|(_, occurs)| **occurs);
        let sets = sets.filter_map(|(bits, _)| Bound::from_bits(u8::try_from(bits).ok()?));
        sets.flat_map(|bound| [Some(user), None].map(|user| fingerprint(user, url, bound, request))).any(
            |key| {
                let told = self.told.get(&key).map(|(_, until)| until);
                [told, self.pushed.get(&key)].into_iter().flatten().any(|until| *until > needed)
            },
        )
    }
}

fn without_fragment(url: &Url) -> &str {
    &url[..Position::AfterQuery]
}

/// Under which set of fields, and for how long, the remote keeps a response for this user at the least: where it keeps
/// it for everyone, its own word will say so.
fn kept_as(request: &HeaderMap, response: &ResponseHead) -> Option<(Bound, Duration)> {
    let may = |scope| storable(&Method::GET, request, response.status, &response.fields, scope).is_ok();
    let scope = [Scope::Shared, Scope::Private].into_iter().find(|scope| may(*scope))?;
    if ResponseDirectives::of(&response.fields).no_cache {
        return None;
    }
    let now = SystemTime::now();
    let stored = Stored::new(request, response.status, &response.fields, now, now);
    let mut names: Vec<HeaderName> = PRIVATE_TO.iter().chain(unfamiliar(request)).cloned().collect();
    for value in response.fields.get_all(header::VARY) {
        for name in value.to_str().ok()?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            names.push(HeaderName::try_from(name).ok().filter(|_| name != "*")?);
        }
    }
    Some((Bound::to(&names)?, stored.lifetime(scope).saturating_sub(stored.age(now))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, StatusCode};

    const START: Duration = Duration::from_secs(100);
    const RTT: Duration = Duration::from_millis(600);

    fn url(path: &str) -> Url {
        Url::parse("http://site.test/").unwrap().join(path).unwrap()
    }

    fn entry(number: u64, user: Option<u64>, path: &str, fresh_s: u64) -> Entry {
        let bound = Bound::to([&header::ORIGIN]).unwrap();
        let fingerprint = fingerprint(user, url(path).as_str(), bound, &HeaderMap::new());
        Entry { number, user, bound, fresh_s, fingerprint }
    }

    fn holds(mirror: &Mirror, user: u64, path: &str, now: Duration) -> bool {
        mirror.holds_fresh(user, &url(path), &HeaderMap::new(), now, RTT)
    }

    #[test]
    fn what_is_told_of_counts_until_shortly_before_it_is_stale_or_gone() {
        let mut mirror = Mirror::default();
        mirror.hear(Word::Stored(vec![entry(1, None, "/a", 60), entry(2, None, "/b", 60)]), START);
        assert!(holds(&mirror, 5, "/a", START) && holds(&mirror, 5, "/a#part", START));
        assert!(!holds(&mirror, 5, "/c", START));
        assert!(!holds(&mirror, 5, "/a", START + Duration::from_secs(50)), "too little is left");
        mirror.hear(Word::Evicted(vec![1]), START);
        assert!(!holds(&mirror, 5, "/a", START) && holds(&mirror, 5, "/b", START));
        mirror.hear(Word::Reset, START);
        assert!(!holds(&mirror, 5, "/b", START));
    }

    #[test]
    fn a_users_own_counts_for_nobody_else_and_other_fields_are_other_responses() {
        let mut mirror = Mirror::default();
        mirror.hear(Word::Stored(vec![entry(1, Some(5), "/a", 600)]), START);
        assert!(holds(&mirror, 5, "/a", START) && !holds(&mirror, 6, "/a", START));
        let origin = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static("http://site.test"))]);
        assert!(!mirror.holds_fresh(5, &url("/a"), &origin, START, RTT));
    }

    #[test]
    fn a_renewed_entry_replaces_the_old_one() {
        let mut mirror = Mirror::default();
        mirror.hear(Word::Stored(vec![entry(1, None, "/a", 60)]), START);
        mirror.hear(Word::Stored(vec![entry(1, None, "/a", 600)]), START);
        assert!(holds(&mirror, 5, "/a", START + Duration::from_secs(300)));
        mirror.hear(Word::Evicted(vec![1]), START);
        assert!(!holds(&mirror, 5, "/a", START));
    }

    #[test]
    fn what_replaces_a_response_is_held_when_the_old_one_is_said_to_be_gone_after_it() {
        let mut mirror = Mirror::default();
        mirror.hear(Word::Stored(vec![entry(1, None, "/a", 60)]), START);
        mirror.hear(Word::Stored(vec![entry(2, None, "/a", 600)]), START);
        mirror.hear(Word::Evicted(vec![1]), START);
        assert!(holds(&mirror, 5, "/a", START));
    }

    #[test]
    fn the_oldest_go_first_when_a_remote_tells_without_end() {
        let mut mirror = Mirror::default();
        for number in 0..MOST as u64 + 10 {
            mirror.hear(Word::Stored(vec![entry(number, None, &format!("/{number}"), 600)]), START);
        }
        assert_eq!((mirror.entries.len(), mirror.told.len()), (MOST, MOST));
        assert!(!holds(&mirror, 5, "/9", START) && holds(&mirror, 5, "/10", START));
    }

    #[test]
    fn what_was_pushed_whole_counts_for_its_user_until_the_remote_should_have_spoken() {
        let mut mirror = Mirror::default();
        let request = RequestHead {
            method: Method::GET,
            scheme: "http".into(),
            authority: "site.test".into(),
            path: "/a".into(),
            fields: HeaderMap::new(),
        };
        let response = |cache: &'static str| {
            let fields = [(header::CACHE_CONTROL, HeaderValue::from_static(cache))];
            ResponseHead { status: StatusCode::OK, fields: HeaderMap::from_iter(fields) }
        };
        for cache in ["no-store", "no-cache", "max-age=0"] {
            mirror.pushed(5, &request, &response(cache), START);
            assert!(!holds(&mirror, 5, "/a", START), "{cache}");
        }
        mirror.pushed(5, &request, &response("max-age=600"), START);
        assert!(holds(&mirror, 5, "/a", START + Duration::from_secs(30)));
        assert!(!holds(&mirror, 6, "/a", START));
        assert!(!holds(&mirror, 5, "/a", START + UNTIL_WORD + MARGIN), "the remote has not taken it");
    }
}

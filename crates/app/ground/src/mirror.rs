//! What a remote holds, as far as ground knows: by the remote's own word, and by what was pushed to it whole. As fresh counts
//! only what surely is when a promise would arrive; about the rest the origin can be asked. Pure.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use farhop_bundle::{PRIVATE_TO, unfamiliar};
use farhop_freshness::{
    ResponseDirectives, Scope, Stored, Validators, allows_any_origin, is_guess, storable,
};
use farhop_htotp::mirror::{self, Bound, Entry, Heard, Position, Word, fingerprint};
use farhop_htotp::{RequestHead, ResponseHead};
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// Pushes that count as held until the remote's word comes, and for how long they do.
const MOST_PUSHED: usize = 4_096;
const UNTIL_WORD: Duration = Duration::from_secs(60);
/// Freshness that must be left, besides a round trip: words and requests are on the way for some time.
const MARGIN: Duration = Duration::from_secs(10);

/// The mirror of one remote's repository. Times are since any fixed start.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// The carrier that is heard.
    carrier: u64,
    /// How much of the remote's log was heard.
    heard: Heard,
    /// Number → fingerprint.
    entries: HashMap<u64, u64>,
    /// Fingerprint → the newest entry that has it, fresh until.
    told: HashMap<u64, (u64, Duration)>,
    /// By number: by what the origins of entries can be asked.
    validators: HashMap<u64, Validators>,
    /// Fingerprint → fresh until.
    pushed: HashMap<u64, Duration>,
    /// Which sets of fields occur, by their bits: under each of them a request has a fingerprint.
    sets: [bool; Bound::SETS],
}

/// What a remote holds and must not answer with unless its origin confirms it.
#[derive(Debug, Clone)]
pub(crate) struct Stale {
    /// Its number there.
    pub(crate) entry: u64,
    /// By what the origin can be asked.
    pub(crate) validators: Validators,
}

impl Default for Mirror {
    fn default() -> Self {
        Mirror {
            carrier: 0,
            heard: Heard::default(),
            entries: HashMap::new(),
            told: HashMap::new(),
            validators: HashMap::new(),
            pushed: HashMap::new(),
            sets: [false; Bound::SETS],
        }
    }
}

impl Mirror {
    /// Hears this carrier from now on, and no earlier one; gives how far the log was heard.
    pub(crate) fn listen_to(&mut self, carrier: u64) -> Position {
        self.carrier = carrier;
        // What was under way on the other may be lost.
        self.pushed.clear();
        self.heard.position()
    }

    /// Takes the remote's word in that has come on this carrier; gives what to answer to a summary.
    pub(crate) fn hear(&mut self, carrier: u64, word: Word, now: Duration) -> Option<(usize, Vec<u64>)> {
        if carrier != self.carrier {
            return None;
        }
        let effect = self.heard.hear(&word);
        effect.forgotten.iter().for_each(|number| self.forget(*number));
        match word {
            Word::Reset | Word::Log(_) | Word::Summary(_) => {}
            Word::Stored(entries) => {
                for entry in entries {
                    if self.heard.knows(entry.number) {
                        self.store(entry, now);
                    }
                }
            }
            Word::Validators(all) => all.into_iter().for_each(|own| self.learn(own)),
            Word::Evicted(numbers) => numbers.iter().for_each(|number| self.forget(*number)),
            // Of bodies, whatever they answer: `bases`.
            Word::Holds(_) | Word::Lacks(_) => {}
        }
        effect.differ
    }

    fn store(&mut self, entry: Entry, now: Duration) {
        // What is renewed keeps them until others are told.
        let validators = self.validators.remove(&entry.number);
        self.forget(entry.number);
        self.pushed.remove(&entry.fingerprint);
        self.sets[usize::from(entry.bound.bits())] = true;
        if let Some(validators) = validators {
            self.validators.insert(entry.number, validators);
        }
        self.entries.insert(entry.number, entry.fingerprint);
        let until = now.saturating_add(Duration::from_secs(entry.fresh_s));
        // Listings tell the newest first.
        let newest = self.told.get(&entry.fingerprint).is_none_or(|(number, _)| *number < entry.number);
        if newest {
            self.told.insert(entry.fingerprint, (entry.number, until));
        }
    }

    fn learn(&mut self, told: mirror::Validators) {
        let mirror::Validators { number, tag, modified } = told;
        let tag = HeaderValue::from_bytes(&tag).ok().filter(|tag| !tag.is_empty());
        let validators = Validators { tag, modified: Some(modified).filter(|modified| *modified > 0) };
        if validators.tag.is_none() && validators.modified.is_none() {
            self.validators.remove(&number);
        } else if self.entries.contains_key(&number) {
            self.validators.insert(number, validators);
        }
    }

    fn forget(&mut self, number: u64) {
        self.validators.remove(&number);
        if let Some(fingerprint) = self.entries.remove(&number)
            && self.told.get(&fingerprint).is_some_and(|(newest, _)| *newest == number)
        {
            self.told.remove(&fingerprint);
        }
    }

    /// The fingerprint of an entry that the remote holds.
    pub(crate) fn fingerprint(&self, entry: u64) -> Option<u64> {
        self.entries.get(&entry).copied()
    }

    /// Under which of the remote's fingerprints there is an answer to this request of `user`, fresh or not.
    pub(crate) fn held_as(&self, user: u64, url: &Url, request: &HeaderMap) -> Vec<u64> {
        self.fingerprints(user, url, request).filter(|key| self.told.contains_key(key)).collect()
    }

    /// By what the origin of an entry can be asked about it.
    pub(crate) fn validators_of(&self, entry: u64) -> Option<Validators> {
        self.validators.get(&entry).cloned()
    }

    /// Entries that the remote has told of and that are not gone.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries about which their origins can be asked.
    pub(crate) fn validators(&self) -> usize {
        self.validators.len()
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
        let Some(url) = request.resource() else { return };
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
        self.fingerprints(user, url, request).any(|key| {
            let told = self.told.get(&key).map(|(_, until)| until);
            [told, self.pushed.get(&key)].into_iter().flatten().any(|until| *until > needed)
        })
    }

    /// What the remote holds for this request of `user`, about which the origin can be asked: of several, what it was given
    /// last.
    pub(crate) fn holds_stale(&self, user: u64, url: &Url, request: &HeaderMap) -> Option<Stale> {
        let told = self.fingerprints(user, url, request).filter_map(|key| self.told.get(&key));
        let (entry, _) = told.max_by_key(|(number, _)| *number)?;
        let validators = self.validators.get(entry)?.clone();
        Some(Stale { entry: *entry, validators })
    }

    /// Under which fingerprints there may be an answer to this request.
    fn fingerprints(&self, user: u64, url: &Url, request: &HeaderMap) -> impl Iterator<Item = u64> {
        let url = without_fragment(url);
        let sets = self.sets.iter().enumerate().filter(|(_, occurs)| **occurs);
        let sets = sets.filter_map(|(bits, _)| Bound::from_bits(u8::try_from(bits).ok()?));
        sets.flat_map(move |bound| [Some(user), None].map(|user| fingerprint(user, url, bound, request)))
    }
}

fn without_fragment(url: &Url) -> &str {
    &url[..url::Position::AfterQuery]
}

/// The fingerprints under which the remote may hold this response: as everyone's, and as this user's own.
pub(crate) fn fingerprints_of(
    user: u64,
    url: &Url,
    request: &HeaderMap,
    response: &HeaderMap,
) -> impl Iterator<Item = u64> {
    let vary = names_of_vary(response);
    let own: Vec<HeaderName> = PRIVATE_TO.iter().chain(unfamiliar(request)).cloned().collect();
    let bindings = [(header::ORIGIN, !allows_any_origin(response)), (header::COOKIE, is_guess(response))];
    let anyones = bindings.into_iter().filter_map(|(name, binds)| binds.then_some(name)).collect();
    let all = [(None, anyones), (Some(user), own)];
    all.into_iter().filter_map(move |(whose, mut names)| {
        names.extend(vary.clone()?);
        Some(fingerprint(whose, without_fragment(url), Bound::to(&names)?, request))
    })
}

/// The fields that a response varies by; `None` where no request is like another.
fn names_of_vary(response: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut names = Vec::new();
    for value in response.get_all(header::VARY) {
        for name in value.to_str().ok()?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            names.push(HeaderName::try_from(name).ok().filter(|_| name != "*")?);
        }
    }
    Some(names)
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
    names.extend(names_of_vary(&response.fields)?);
    Some((Bound::to(&names)?, stored.lifetime(scope).saturating_sub(stored.age(now))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, StatusCode};

    use farhop_htotp::mirror::MOST;

    const START: Duration = Duration::from_secs(100);
    const RTT: Duration = Duration::from_millis(600);

    fn say(mirror: &mut Mirror, word: Word, now: Duration) {
        assert_eq!(mirror.hear(0, word, now), None);
    }

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
        say(&mut mirror, Word::Stored(vec![entry(1, None, "/a", 60), entry(2, None, "/b", 60)]), START);
        assert!(holds(&mirror, 5, "/a", START) && holds(&mirror, 5, "/a#part", START));
        assert!(!holds(&mirror, 5, "/c", START));
        assert!(!holds(&mirror, 5, "/a", START + Duration::from_secs(50)), "too little is left");
        say(&mut mirror, Word::Evicted(vec![1]), START);
        assert!(!holds(&mirror, 5, "/a", START) && holds(&mirror, 5, "/b", START));
        say(&mut mirror, Word::Reset, START);
        assert!(!holds(&mirror, 5, "/b", START));
    }

    #[test]
    fn a_users_own_counts_for_nobody_else_and_other_fields_are_other_responses() {
        let mut mirror = Mirror::default();
        say(&mut mirror, Word::Stored(vec![entry(1, Some(5), "/a", 600)]), START);
        assert!(holds(&mirror, 5, "/a", START) && !holds(&mirror, 6, "/a", START));
        let origin = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static("http://site.test"))]);
        assert!(!mirror.holds_fresh(5, &url("/a"), &origin, START, RTT));
    }

    fn validators(number: u64, tag: &'static str) -> mirror::Validators {
        mirror::Validators { number, tag: tag.into(), modified: 0 }
    }

    fn asked_by(mirror: &Mirror, user: u64, path: &str) -> Option<(u64, String)> {
        let stale = mirror.holds_stale(user, &url(path), &HeaderMap::new())?;
        Some((stale.entry, stale.validators.tag?.to_str().unwrap().to_owned()))
    }

    #[test]
    fn what_is_stale_is_known_with_its_validators_until_it_is_gone() {
        let mut mirror = Mirror::default();
        say(&mut mirror, Word::Validators(vec![validators(1, "\"early\"")]), START);
        say(&mut mirror, Word::Stored(vec![entry(1, None, "/a", 0), entry(2, Some(5), "/b", 0)]), START);
        assert_eq!(asked_by(&mirror, 5, "/a"), None, "nothing is known of it");
        say(&mut mirror, Word::Validators(vec![validators(1, "\"a\""), validators(2, "\"b\"")]), START);
        assert!(!holds(&mirror, 5, "/a", START));
        assert_eq!(asked_by(&mirror, 6, "/a#part"), Some((1, "\"a\"".into())), "it is anyone's");
        assert_eq!(asked_by(&mirror, 5, "/b"), Some((2, "\"b\"".into())));
        assert_eq!(asked_by(&mirror, 6, "/b"), None, "it is another's");
        say(&mut mirror, Word::Stored(vec![entry(1, None, "/a", 60)]), START);
        assert_eq!(asked_by(&mirror, 5, "/a"), Some((1, "\"a\"".into())), "it was renewed");
        say(&mut mirror, Word::Validators(vec![validators(1, "")]), START);
        assert_eq!(asked_by(&mirror, 5, "/a"), None);
        say(&mut mirror, Word::Evicted(vec![2]), START);
        assert_eq!((asked_by(&mirror, 5, "/b"), mirror.validators.len()), (None, 0));
    }

    #[test]
    fn a_renewed_entry_replaces_the_old_one() {
        let mut mirror = Mirror::default();
        say(&mut mirror, Word::Stored(vec![entry(1, None, "/a", 60)]), START);
        say(&mut mirror, Word::Stored(vec![entry(1, None, "/a", 600)]), START);
        assert!(holds(&mirror, 5, "/a", START + Duration::from_secs(300)));
        say(&mut mirror, Word::Evicted(vec![1]), START);
        assert!(!holds(&mirror, 5, "/a", START));
    }

    #[test]
    fn what_replaces_a_response_is_held_when_the_old_one_is_said_to_be_gone_after_it() {
        let mut mirror = Mirror::default();
        say(&mut mirror, Word::Stored(vec![entry(1, None, "/a", 60)]), START);
        say(&mut mirror, Word::Stored(vec![entry(2, None, "/a", 600)]), START);
        say(&mut mirror, Word::Evicted(vec![1]), START);
        assert!(holds(&mirror, 5, "/a", START));
    }

    #[test]
    fn what_a_remote_tells_without_end_is_bounded() {
        let mut mirror = Mirror::default();
        for number in 0..2 * MOST as u64 + 10 {
            say(&mut mirror, Word::Stored(vec![entry(number, None, "/", 600)]), START);
        }
        assert_eq!((mirror.entries.len(), mirror.told.len()), (2 * MOST, 1));
    }

    #[test]
    fn another_carrier_goes_on_and_the_one_before_is_not_heard_any_more() {
        let mut mirror = Mirror::default();
        mirror.listen_to(1);
        for word in [
            Word::Reset,
            Word::Log(Position { log: 9, next: 1 }),
            Word::Stored(vec![entry(1, None, "/a", 60)]),
        ] {
            mirror.hear(1, word, START);
        }
        assert_eq!(mirror.listen_to(2), Position { log: 9, next: 2 });
        mirror.hear(1, Word::Evicted(vec![1]), START);
        assert!(holds(&mirror, 5, "/a", START), "this may have been said anew");
        mirror.hear(2, Word::Log(Position { log: 9, next: 2 }), START);
        mirror.hear(2, Word::Stored(vec![entry(2, None, "/b", 60)]), START);
        assert!(holds(&mirror, 5, "/a", START) && holds(&mirror, 5, "/b", START));
        mirror.hear(2, Word::Log(Position { log: 10, next: 1 }), START);
        assert!(!holds(&mirror, 5, "/a", START), "it is another log");
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

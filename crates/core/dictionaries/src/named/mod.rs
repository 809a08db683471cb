//! Dictionaries that origins name (RFC 9842): responses that later ones may be coded with. Which of them a request is to
//! offer, and for how long.

mod pattern;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use url::Url;

pub use pattern::Pattern;
pub use words::{Offer, available};

/// Longest dictionary that is kept, in bytes.
pub const LARGEST_NAMED: usize = 4 << 20;
/// What each costs besides, without the head of its response.
const OVERHEAD: usize = 1_024;

/// One that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// SHA-256.
    pub hash: [u8; 32],
    /// The response's content, without content codings.
    pub bytes: Bytes,
    /// For what it is.
    pub offer: Offer,
}

struct Kept<O, H> {
    /// Whose it is; everyone's without.
    owner: Option<O>,
    url: Url,
    /// Of its response.
    head: H,
    origin: String,
    /// On the clock of whoever asks.
    until: Duration,
    named: Arc<Named>,
    /// Bytes, about.
    size: usize,
}

/// Those that are kept, for owners of this kind, each with the head of its response. What is not fresh any more is not offered,
/// but stays for as long as there is room: its origin may confirm it.
pub struct Shelf<O, H> {
    most: usize,
    weigh: fn(&H) -> usize,
    bytes: usize,
    next: u64,
    kept: BTreeMap<u64, Kept<O, H>>,
}

impl<O: Eq, H> Shelf<O, H> {
    /// Keeps so many bytes. `weigh` says how many a head takes.
    pub fn new(most: usize, weigh: fn(&H) -> usize) -> Shelf<O, H> {
        Shelf { most, weigh, bytes: 0, next: 0, kept: BTreeMap::new() }
    }

    /// Keeps so many from now on.
    pub fn set(&mut self, most: usize) {
        self.most = most;
        self.fit();
    }

    /// Whether any is kept.
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// How many, and in how many bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }

    /// A response is here whole that may serve `owner`, or everyone, until then. It takes the place of one for the same
    /// requests.
    pub fn put(&mut self, owner: Option<O>, url: &Url, offer: Offer, bytes: Bytes, until: Duration, head: H) {
        if bytes.is_empty() || bytes.len() > LARGEST_NAMED {
            return;
        }
        let origin = url.origin().ascii_serialization();
        let is_same = |kept: &Kept<O, H>| {
            let its = &kept.named.offer;
            kept.owner == owner
                && kept.origin == origin
                && (&its.text, &its.destinations) == (&offer.text, &offer.destinations)
        };
        let before: Vec<u64> =
            self.kept.iter().filter(|(_, kept)| is_same(kept)).map(|(id, _)| *id).collect();
        before.into_iter().for_each(|id| self.forget(id));
        let hash = Sha256::digest(&bytes).into();
        let size = bytes.len() + OVERHEAD + url.as_str().len() + (self.weigh)(&head);
        self.bytes += size;
        let (url, named) = (url.clone(), Arc::new(Named { hash, bytes, offer }));
        self.kept.insert(self.next, Kept { owner, url, head, origin, until, named, size });
        self.next += 1;
        self.fit();
    }

    /// The origin has told `owner` that what it has of `url` is not modified. `judge` is given the head of each response of it that
    /// is kept, and whether it is everyone's; and says for which requests it is from now on, and until when, if it is.
    pub fn renew(
        &mut self,
        owner: &O,
        url: &Url,
        mut judge: impl FnMut(&mut H, bool) -> Option<(Offer, Duration)>,
    ) {
        let is_its =
            |kept: &&mut Kept<O, H>| kept.url == *url && kept.owner.as_ref().is_none_or(|own| own == owner);
        for kept in self.kept.values_mut().filter(is_its) {
            let Some((offer, until)) = judge(&mut kept.head, kept.owner.is_none()) else { continue };
            kept.until = until;
            let url = kept.url.as_str().len();
            let size = kept.named.bytes.len() + OVERHEAD + url + (self.weigh)(&kept.head);
            self.bytes = self.bytes + size - kept.size;
            kept.size = size;
            if kept.named.offer != offer {
                let Named { hash, bytes, .. } = &*kept.named;
                kept.named = Arc::new(Named { hash: *hash, bytes: bytes.clone(), offer });
            }
        }
        self.fit();
    }

    /// The one that a request of `owner` for `url` is to offer, whose destination is this as far as that is known.
    pub fn find(&self, owner: &O, url: &Url, destination: Option<&str>, now: Duration) -> Option<Arc<Named>> {
        let origin = url.origin().ascii_serialization();
        let fits = |kept: &Kept<O, H>| {
            let offer = &kept.named.offer;
            let is_for = |destination: &str| offer.destinations.iter().any(|one| one == destination);
            // RFC 9842 §2.2.1: it has to be fresh.
            kept.until > now
                && kept.origin == origin
                && kept.owner.as_ref().is_none_or(|own| own == owner)
                && (offer.destinations.is_empty() || destination.is_some_and(is_for))
                && offer.pattern.matches(url)
        };
        // RFC 9842 §2.2.3: one for this destination, then the one with the longest pattern, then the newest.
        let best = self.kept.iter().filter(|(_, kept)| fits(kept)).max_by_key(|(id, kept)| {
            let offer = &kept.named.offer;
            (!offer.destinations.is_empty(), offer.text.len(), **id)
        });
        best.map(|(_, kept)| Arc::clone(&kept.named))
    }

    /// What was coded with it was not what it should have been.
    pub fn drop_named(&mut self, hash: &[u8; 32]) {
        let its: Vec<u64> =
            self.kept.iter().filter(|(_, kept)| kept.named.hash == *hash).map(|(id, _)| *id).collect();
        its.into_iter().for_each(|id| self.forget(id));
    }

    /// What is stale goes first, then what will be soonest.
    fn fit(&mut self) {
        while self.bytes > self.most
            && let Some((id, _)) = self.kept.iter().min_by_key(|(id, kept)| (kept.until, **id))
        {
            self.forget(*id);
        }
    }

    fn forget(&mut self, id: u64) {
        self.bytes -= self.kept.remove(&id).map_or(0, |kept| kept.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn url(path: &str) -> Url {
        Url::parse("https://site.test").unwrap().join(path).unwrap()
    }

    fn put(shelf: &mut Shelf<u8, &'static str>, owner: Option<u8>, field: &str, body: &'static str) {
        let from = url("/app/v1.js");
        let offer = Offer::read(field, &from).unwrap();
        shelf.put(owner, &from, offer, Bytes::from_static(body.as_bytes()), HOUR, body);
    }

    fn find(shelf: &Shelf<u8, &str>, owner: u8, path: &str, destination: Option<&str>) -> Option<Bytes> {
        shelf.find(&owner, &url(path), destination, Duration::ZERO).map(|named| named.bytes.clone())
    }

    #[test]
    fn the_one_for_the_destination_goes_first_then_the_longest_pattern_then_the_newest() {
        let mut shelf = Shelf::new(1 << 20, |_| 0);
        put(&mut shelf, None, "match=\"/*\", match-dest=(\"script\")", "scripts");
        put(&mut shelf, None, "match=\"/app/*\"", "app");
        put(&mut shelf, None, "match=\"/:ap/*\"", "same length");
        put(&mut shelf, None, "match=\"/*\"", "all");
        let found = |path, destination| find(&shelf, 1, path, destination);
        assert_eq!(found("/app/x", Some("script")).unwrap(), "scripts");
        assert_eq!(found("/app/x", Some("style")).unwrap(), "same length");
        assert_eq!(found("/x", None).unwrap(), "all");
        assert_eq!(found("/app/x", None).unwrap(), "same length");
    }

    #[test]
    fn a_newer_one_for_the_same_requests_takes_the_place_of_the_older() {
        let mut shelf = Shelf::new(1 << 20, |_| 0);
        put(&mut shelf, None, "match=\"/app/*\", id=\"1\"", "one");
        put(&mut shelf, None, "match=\"/app/*\", id=\"2\"", "two");
        assert_eq!(shelf.size(), (1, 3 + url("/app/v1.js").as_str().len() + OVERHEAD));
        let named = shelf.find(&1, &url("/app/x"), None, Duration::ZERO).unwrap();
        assert_eq!((named.offer.id.as_str(), &named.hash[..]), ("2", &Sha256::digest(b"two")[..]));
        shelf.drop_named(&named.hash);
        assert_eq!(shelf.size(), (0, 0));
    }

    #[test]
    fn what_is_stale_of_another_user_or_origin_or_too_long_is_not_offered() {
        let mut shelf = Shelf::new(16 << 20, |_| 0);
        put(&mut shelf, Some(1), "match=\"/own/*\"", "own");
        put(&mut shelf, None, "match=\"/app/*\"", "app");
        assert!(find(&shelf, 1, "/own/x", None).is_some() && find(&shelf, 2, "/own/x", None).is_none());
        assert!(find(&shelf, 2, "/app/x", None).is_some());
        for other in ["http://site.test/app/x", "https://site.test:8443/app/x", "https://www.site.test/app/x"]
        {
            assert!(shelf.find(&1, &Url::parse(other).unwrap(), None, Duration::ZERO).is_none(), "{other}");
        }
        assert!(shelf.find(&1, &url("/app/x"), None, HOUR).is_none());
        let offer = Offer::read("match=\"*\"", &url("/a")).unwrap();
        shelf.put(None, &url("/a"), offer, vec![0; LARGEST_NAMED + 1].into(), HOUR, "");
        assert_eq!(shelf.size().0, 2);
    }

    #[test]
    fn what_is_stale_is_offered_again_once_its_origin_has_confirmed_it() {
        let mut shelf = Shelf::new(1 << 20, |_| 0);
        put(&mut shelf, None, "match=\"/app/*\"", "all");
        put(&mut shelf, Some(1), "match=\"/own/*\"", "own");
        put(&mut shelf, Some(2), "match=\"/own/*\"", "else");
        let at = |shelf: &Shelf<u8, &'static str>, owner, path: &str| {
            shelf.find(&owner, &url(path), None, HOUR).map(|named| named.bytes.clone())
        };
        assert_eq!(at(&shelf, 1, "/app/x"), None);
        shelf.renew(&1, &url("/app/v2.js"), |_, _| panic!("nothing is kept of it"));
        let renewed = Offer::read("match=\"/new/*\"", &url("/app/v1.js")).unwrap();
        let mut judged = Vec::new();
        shelf.renew(&1, &url("/app/v1.js"), |head, is_anyones| {
            judged.push((*head, is_anyones));
            is_anyones.then(|| (renewed.clone(), HOUR * 2))
        });
        assert_eq!(judged, [("all", true), ("own", false)]);
        assert_eq!(at(&shelf, 1, "/new/x").unwrap(), "all", "for those requests that it says now");
        assert!(at(&shelf, 1, "/app/x").is_none() && at(&shelf, 1, "/own/x").is_none());
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_will_be_stale_first_goes_first() {
        let one = OVERHEAD + url("/app/v1.js").as_str().len() + 3 + 3;
        let mut shelf = Shelf::new(3 * one, |head: &&str| head.len());
        for field in ["match=\"/1/*\"", "match=\"/2/*\"", "match=\"/3/*\"", "match=\"/4/*\""] {
            put(&mut shelf, None, field, "one");
        }
        assert_eq!(shelf.size().0, 3);
        assert!(find(&shelf, 1, "/1/x", None).is_none() && find(&shelf, 1, "/4/x", None).is_some());
        let offer = Offer::read("match=\"/5/*\"", &url("/app/v1.js")).unwrap();
        shelf.put(None, &url("/app/v1.js"), offer, "one".into(), Duration::from_secs(1), "one");
        assert!(find(&shelf, 1, "/5/x", None).is_none() && find(&shelf, 1, "/2/x", None).is_some());
        shelf.set(0);
        assert_eq!((shelf.size(), shelf.is_on()), ((0, 0), false));
    }
}

//! What documents named when they were last read, pages and those in their frames, for when they have not changed: the origin
//! answers 304, or the remote holds them, and there is no text to read. It is remembered for a while, for the user who opened the page.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_freshness::{Scope, Stored, Validators, Verdict, storable};
use farhop_htotp::ResponseHead;
use farhop_page::{Hint, Policy};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use url::Url;

use crate::ahead::Visitor;

/// Pages that are remembered, for all users together, and bytes of what they named; the oldest go first.
const MOST: usize = 512;
const BYTES: usize = 24 << 20;
/// Hints of one page: about as many as its budget of requests.
const HINTS: usize = 600;

/// What one page named, itself and through its style sheets and modules.
#[derive(Debug)]
pub(crate) struct Named {
    /// Of the response that was read.
    head: ResponseHead,
    found: Mutex<Found>,
    size: AtomicUsize,
}

#[derive(Debug, Default)]
struct Found {
    hints: Vec<Hint>,
    policies: Vec<Policy>,
}

impl Named {
    /// Nothing yet of a page that is answered with `head`; `None` where no 304 can follow, and no remote answers with it.
    pub(crate) fn new(head: &ResponseHead) -> Option<Named> {
        let fields = &head.fields;
        let has_validator = fields.contains_key(header::ETAG) || fields.contains_key(header::LAST_MODIFIED);
        if head.status != StatusCode::OK || !(has_validator || lasts(head)) {
            return None;
        }
        let size = fields.iter().map(|(name, value)| 64 + name.as_str().len() + value.len()).sum::<usize>();
        Some(Named { head: head.clone(), found: Mutex::default(), size: AtomicUsize::new(1024 + size) })
    }

    pub(crate) fn note(&self, hint: &Hint) {
        let mut found = lock(&self.found);
        if found.hints.len() < HINTS {
            self.size.fetch_add(size_of::<Hint>() + 2 * hint.url.as_str().len(), Relaxed);
            found.hints.push(hint.clone());
        }
    }

    pub(crate) fn obey(&self, policy: &Policy) {
        let mut found = lock(&self.found);
        if found.policies.len() < HINTS {
            self.size.fetch_add(size_of::<Policy>() + policy.text.len(), Relaxed);
            found.policies.push(policy.clone());
        }
    }

    /// All of it so far, in order.
    pub(crate) fn all(&self) -> (Vec<Hint>, Vec<Policy>) {
        let found = lock(&self.found);
        (found.hints.clone(), found.policies.clone())
    }

    fn as_stored(&self) -> Stored {
        Stored::new(&HeaderMap::new(), self.head.status, &self.head.fields, UNIX_EPOCH, UNIX_EPOCH)
    }

    /// Whether what was read has one of these validators: the tag, or where there is none the date.
    pub(crate) fn is_told_by(&self, validators: &Validators) -> bool {
        let own = self.as_stored();
        let opaque = |tag: &HeaderValue| {
            let tag = tag.as_bytes();
            tag.strip_prefix(b"W/").unwrap_or(tag).to_vec()
        };
        own.validators().is_some_and(|own| match (&own.tag, &validators.tag) {
            (Some(own), Some(told)) => opaque(own) == opaque(told),
            (None, None) => own.modified == validators.modified,
            _ => false,
        })
    }

    /// Whether what was read was made then by its origin, in seconds since 1970. Two pages of one second are taken for one: what
    /// comes of that is asked about or fetched in vain, and no more.
    pub(crate) fn is_dated(&self, dated: u64) -> bool {
        self.head.fields.contains_key(header::DATE)
            && self.as_stored().date() == UNIX_EPOCH + Duration::from_secs(dated)
    }

    /// The head of the page, which is confirmed by a 304 with these fields (RFC 9111 §3.2). `None` if that is about another
    /// version than was read.
    pub(crate) fn confirmed_by(&self, not_modified: &HeaderMap) -> Option<ResponseHead> {
        let opaque = |fields: &HeaderMap| {
            let tag = fields.get(header::ETAG)?.as_bytes();
            Some(tag.strip_prefix(b"W/").unwrap_or(tag).to_vec())
        };
        if let (Some(told), Some(own)) = (opaque(not_modified), opaque(&self.head.fields))
            && told != own
        {
            return None;
        }
        let mut head = self.head.clone();
        for name in not_modified.keys().filter(|name| **name != header::CONTENT_LENGTH) {
            head.fields.remove(name);
            for value in not_modified.get_all(name) {
                head.fields.append(name.clone(), value.clone());
            }
        }
        Some(head)
    }
}

/// Whether a remote may answer with what has this head without asking.
fn lasts(head: &ResponseHead) -> bool {
    let (ResponseHead { status, fields }, now) = (head, SystemTime::now());
    let asked = HeaderMap::new();
    let may_be_held = storable(&Method::GET, &asked, *status, fields, Scope::Private).is_ok();
    let verdict =
        || Stored::new(&asked, *status, fields, now, now).verdict(&Method::GET, &asked, Scope::Private, now);
    may_be_held && matches!(verdict(), Verdict::Fresh | Verdict::Revalidate)
}

/// Where a document is shown: in a frame it is another than in a window of its own, with other needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Window,
    Frame,
}

/// Whose page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opener {
    /// The remote's name in the settings.
    pub(crate) remote: Arc<str>,
    /// The user, by a name that outlives the carrier.
    pub(crate) visitor: Visitor,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    opener: Opener,
    shown: Shown,
    url: Url,
    named: Arc<Named>,
}

impl Entry {
    fn size(&self) -> usize {
        self.named.size.load(Relaxed) + 2 * self.url.as_str().len()
    }
}

impl Pages {
    /// `opener` reads the document at `url`.
    pub(crate) fn note(&self, opener: Opener, shown: Shown, mut url: Url, named: &Arc<Named>) {
        url.set_fragment(None);
        let mut pages = lock(&self.0);
        pages.retain(|page| page.opener != opener || page.shown != shown || page.url != url);
        pages.push_back(Entry { opener, shown, url, named: Arc::clone(named) });
        // What has been named since is weighed now.
        let mut bytes: usize = pages.iter().map(Entry::size).sum();
        while pages.len() > MOST || (bytes > BYTES && pages.len() > 1) {
            let Some(oldest) = pages.pop_front() else { break };
            bytes = bytes.saturating_sub(oldest.size());
        }
    }

    /// What the document at `url` named when `opener` last read it. It is in use again.
    pub(crate) fn recall(&self, opener: &Opener, shown: Shown, url: &Url) -> Option<Arc<Named>> {
        let mut pages = lock(&self.0);
        let is_it = |page: &Entry| {
            page.opener == *opener
                && page.shown == shown
                && page.url[..url::Position::AfterQuery] == url[..url::Position::AfterQuery]
        };
        let place = pages.iter().position(is_it)?;
        let page = pages.remove(place)?;
        let named = Arc::clone(&page.named);
        pages.push_back(page);
        Some(named)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Shown::{Frame, Window};
    use super::*;
    use farhop_page::{Destination, Mode, Source};

    fn head(tag: &'static str) -> ResponseHead {
        let fields = [(header::ETAG, tag), (header::CACHE_CONTROL, "max-age=0"), (header::SERVER, "s")];
        let fields = fields.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value)));
        ResponseHead { status: StatusCode::OK, fields: fields.collect() }
    }

    fn opener(user: u64) -> Opener {
        Opener { remote: "ship".into(), visitor: (1, user) }
    }

    fn url(path: &str) -> Url {
        Url::parse("http://site.test/").unwrap().join(path).unwrap()
    }

    #[test]
    fn a_page_is_remembered_for_who_read_it_until_others_take_its_place() {
        let (pages, named) = (Pages::default(), Arc::new(Named::new(&head("\"1\"")).unwrap()));
        pages.note(opener(1), Window, url("/a#part"), &named);
        assert!(pages.recall(&opener(1), Window, &url("/a#other")).is_some());
        assert!(pages.recall(&opener(2), Window, &url("/a")).is_none(), "another user's");
        assert!(pages.recall(&opener(1), Window, &url("/a?b")).is_none());
        assert!(pages.recall(&opener(1), Frame, &url("/a")).is_none(), "in a frame it may be another");
        for number in 0..MOST {
            assert!(pages.recall(&opener(1), Window, &url("/a")).is_some(), "it is in use");
            pages.note(opener(2), Window, url(&format!("/{number}")), &named);
        }
        assert!(pages.recall(&opener(2), Window, &url("/0")).is_none());
        assert_eq!(lock(&pages.0).len(), MOST);
    }

    #[test]
    fn pages_that_name_much_leave_room_for_fewer() {
        let pages = Pages::default();
        let hint = Hint::new(url(&"x".repeat(100_000)), Destination::Image, Mode::NoCors, Source::Image);
        for number in 0..3 {
            let named = Arc::new(Named::new(&head("\"1\"")).unwrap());
            (0..2 * HINTS).for_each(|_| named.note(&hint));
            assert_eq!(named.all().0.len(), HINTS);
            pages.note(opener(number), Window, url("/"), &named);
        }
        assert_eq!(lock(&pages.0).len(), 1, "the newest stays, whatever it takes");
    }

    #[test]
    fn what_was_read_is_told_by_its_validators() {
        let named = Named::new(&head("\"1\"")).unwrap();
        let tagged = |tag| Validators { tag: Some(HeaderValue::from_static(tag)), modified: None };
        assert!(named.is_told_by(&tagged("\"1\"")) && named.is_told_by(&tagged("W/\"1\"")));
        assert!(!named.is_told_by(&tagged("\"2\"")));
        assert!(!named.is_told_by(&Validators { tag: None, modified: Some(1) }));
    }

    #[test]
    fn what_has_no_validator_is_told_by_its_date_as_long_as_a_remote_may_hold_it() {
        let of = |caching: &'static str| {
            let fields = [(header::DATE, "Sun, 06 Nov 1994 08:49:37 GMT"), (header::CACHE_CONTROL, caching)];
            let fields = fields.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value)));
            Named::new(&ResponseHead { status: StatusCode::OK, fields: fields.collect() })
        };
        let long = of("max-age=3153600000").unwrap();
        assert!(long.is_dated(784_111_777) && !long.is_dated(784_111_778));
        assert!(!Named::new(&head("\"1\"")).unwrap().is_dated(0), "it says no date");
        assert!(of("no-store").is_none() && of("no-cache").is_none() && of("max-age=60").is_none());
    }

    #[test]
    fn a_304_renews_the_fields_of_the_version_that_was_read() {
        let named = Named::new(&head("W/\"1\"")).unwrap();
        let told = |tag| {
            HeaderMap::from_iter(
                [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache")]
                    .map(|(name, value)| (name, HeaderValue::from_static(value))),
            )
        };
        assert!(named.confirmed_by(&told("\"2\"")).is_none());
        let head = named.confirmed_by(&told("\"1\"")).unwrap();
        assert_eq!(
            (&head.fields[header::CACHE_CONTROL], &head.fields[header::SERVER]),
            (&HeaderValue::from_static("no-cache"), &HeaderValue::from_static("s"),)
        );
        assert!(Named::new(&ResponseHead { status: StatusCode::NOT_FOUND, ..head }).is_none());
    }
}

//! Pages that were read a moment ago, and the documents in their frames, for what their browser asks for although nobody foresaw
//! it: that may tell what it will ask for next. They are forgotten after that moment, whether anything else is asked for or not.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_events::ExchangeId;
use http::{HeaderMap, header};
use tokio::time::{Instant, sleep_until};
use url::Url;

use crate::allowance::Allowance;
use crate::owner::Owner;
use crate::reading::Reading;

/// How long a page is remembered: what its scripts ask for when they begin comes within seconds.
const KEPT: Duration = Duration::from_secs(30);
/// Documents remembered for all users together, and bytes of what was read of them; the oldest go first, pages with their frames.
const MOST: usize = 1024;
const BYTES: usize = 32 << 20;

/// See the module. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Recent(Arc<Mutex<VecDeque<Entry>>>);

struct Entry {
    owner: Owner,
    read: Read,
    at: Instant,
}

/// A document that was read.
#[derive(Clone)]
pub(crate) struct Read {
    /// The request that opened the page that it is, or that it is in.
    pub(crate) page: ExchangeId,
    pub(crate) url: Url,
    pub(crate) reading: Arc<Reading>,
    pub(crate) allowance: Allowance,
}

impl Recent {
    /// `owner` has opened this document at `now`, and its reading begins.
    pub(crate) fn note(&self, owner: &Owner, mut read: Read, now: Instant) {
        read.url.set_fragment(None);
        let mut entries = lock(&self.0);
        // Loads of one document do not go on side by side.
        let is_framed = read.reading.is_framed();
        entries.retain(|entry| {
            entry.owner != *owner || entry.read.url != read.url || entry.is_framed() != is_framed
        });
        let newest = read.page;
        entries.push_back(Entry { owner: owner.clone(), read, at: now });
        // What has been read since is weighed now; each page has bounds of its own.
        let mut bytes: usize = entries.iter().map(Entry::size).sum();
        while entries.len() > MOST || (bytes > BYTES && entries.len() > 1) {
            let Some(oldest) = entries.pop_front() else { break };
            bytes = bytes.saturating_sub(oldest.size());
            if !oldest.is_framed() && oldest.read.page != newest {
                entries.retain(|entry| entry.read.page != oldest.read.page);
            }
        }
        drop(entries);
        let entries = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            sleep_until(now + KEPT).await;
            if let Some(entries) = entries.upgrade() {
                lock(&entries).retain(|entry| entry.at > now);
            }
        });
    }

    /// The document for which `owner` asks with these fields, as far as `Referer` says: it names the document, or, of what a
    /// stylesheet or module asks for, a file of the same origin; the page opened last, then, and where there is none the frame.
    pub(crate) fn page_of(&self, owner: &Owner, request: &HeaderMap, now: Instant) -> Option<Read> {
        let referer = Url::parse(request.get(header::REFERER)?.to_str().ok()?).ok()?;
        let entries = lock(&self.0);
        let own = || entries.iter().rev().filter(|entry| entry.owner == *owner && now < entry.at + KEPT);
        let named = own().find(|entry| entry.read.url == referer);
        let there = || own().filter(|entry| entry.read.url.origin() == referer.origin());
        let found = named.or_else(|| there().find(|entry| !entry.is_framed())).or_else(|| there().next());
        found.map(|entry| entry.read.clone())
    }
}

impl Entry {
    fn is_framed(&self) -> bool {
        self.read.reading.is_framed()
    }

    /// What was read of a frame counts as read of its page.
    fn size(&self) -> usize {
        if self.is_framed() { 0 } else { self.read.reading.size() }
    }
}

fn lock(entries: &Mutex<VecDeque<Entry>>) -> MutexGuard<'_, VecDeque<Entry>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_htotp::{RequestHead, ResponseHead};
    use http::{Method, StatusCode};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::SystemTime;

    fn owner(user: u64) -> Owner {
        Owner { remote: "ship".into(), user }
    }

    fn request(path: &str) -> RequestHead {
        RequestHead {
            method: Method::GET,
            scheme: "http".into(),
            authority: "site.test".into(),
            path: path.into(),
            fields: HeaderMap::new(),
        }
    }

    /// A page at this place, of which so many bytes were read.
    fn read(path: &str, bytes: usize) -> Read {
        let request = request(path);
        let url = Url::parse(&request.url()).unwrap();
        let known = Arc::default();
        let noted = farhop_bundle::Cookies::default().note_request(&url, &request.fields, SystemTime::now());
        let text = "[[remote]]\nname = 'ship'\nkeys = ['made in the test']";
        let settings: farhop_settings::GroundSettings =
            farhop_settings::parse(text, "".as_ref(), &[]).unwrap();
        let response = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
        let reading = Reading::page(&request, &response, &noted, &known, &settings.bundle).unwrap();
        reading.weigh(bytes);
        static PAGES: AtomicU64 = AtomicU64::new(0);
        let page = ExchangeId(PAGES.fetch_add(1, Relaxed));
        Read { page, url, reading: Arc::new(reading), allowance: Allowance::new(0) }
    }

    /// A frame of `page` at this place.
    fn framed(page: &Read, path: &str) -> Read {
        let request = request(path);
        let url = Url::parse(&request.url()).unwrap();
        let response = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
        let frame = page.reading.frame(&url, &request, &response).unwrap();
        Read { url, reading: Arc::new(frame), ..page.clone() }
    }

    fn asking(path: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::REFERER, format!("http://site.test{path}").parse().unwrap())])
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_forgotten_after_a_moment_though_nothing_else_happens() {
        let (recent, start) = (Recent::default(), Instant::now());
        recent.note(&owner(1), read("/a", 0), start);
        let alive = Arc::downgrade(&lock(&recent.0)[0].read.reading);
        assert!(recent.page_of(&owner(1), &asking("/a"), start).is_some());
        assert!(recent.page_of(&owner(2), &asking("/a"), start).is_none(), "another user's");
        tokio::time::sleep(KEPT / 2).await;
        recent.note(&owner(1), read("/b", 0), Instant::now());
        tokio::time::sleep(KEPT / 2 + Duration::from_millis(1)).await;
        assert!(alive.upgrade().is_none());
        assert_eq!(lock(&recent.0).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_found_by_their_own_name_and_go_with_their_page() {
        let (recent, now) = (Recent::default(), Instant::now());
        let page = read("/", 1);
        recent.note(&owner(1), page.clone(), now);
        recent.note(&owner(1), framed(&page, "/frame"), now);
        recent.note(&owner(1), framed(&page, "/"), now);
        let found = |path: &str| recent.page_of(&owner(1), &asking(path), now).unwrap();
        assert_eq!(found("/frame").url.path(), "/frame");
        assert!(!found("/a.css").reading.is_framed(), "it may be of either");
        recent.note(&owner(2), read("/larger", 2 * BYTES), now);
        assert_eq!(lock(&recent.0).len(), 1);
        for number in 0..2 * MOST {
            recent.note(&owner(2), framed(&page, &format!("/{number}")), now);
        }
        assert_eq!(lock(&recent.0).len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_or_too_large_pages_the_oldest_are_forgotten() {
        let (recent, now) = (Recent::default(), Instant::now());
        let held = || lock(&recent.0).len();
        for user in 0..MOST as u64 + 5 {
            recent.note(&owner(user), read("/", 0), now);
        }
        assert_eq!(held(), MOST);
        recent.note(&owner(0), read("/", 0), now);
        recent.note(&owner(0), read("/", 0), now);
        assert_eq!(held(), MOST, "loaded again");
        for _ in 0..3 {
            recent.note(&owner(7), read("/large", BYTES / 2), now);
        }
        recent.note(&owner(8), read("/large", BYTES / 2), now);
        assert!(held() < MOST);
        assert!(recent.page_of(&owner(8), &asking("/large"), now).is_some());
        recent.note(&owner(9), read("/larger", 2 * BYTES), now);
        assert_eq!(held(), 1, "the newest stays, whatever it takes");
    }
}

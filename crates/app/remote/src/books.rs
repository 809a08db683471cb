//! The books of page loads: what was promised to each, what came of it, and what crossed all the same and why. Every
//! event about promises is told here, so that the books and the events agree. Told the time; no I/O but the bus.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use farhop_bundle::PromiseId;
use farhop_events::{Bus, Crossing, Event, ExchangeId, PromiseEnd, Word};
use http::header::{HeaderMap, REFERER};
use url::Url;

use crate::users::User;

/// A page on which nothing happens for so long is told of, whether it is left or not.
const QUIET: Duration = Duration::from_secs(10);
/// Promises whose end is remembered, for the reason of a request that crosses later; those of the oldest page are
/// forgotten first.
const MOST_UNKEPT: usize = 16 * 1024;

/// See the module.
pub(crate) struct Books {
    bus: Bus,
    /// By the exchange of the document.
    pages: BTreeMap<ExchangeId, Page>,
    /// Promises in the `unkept` of all pages.
    unkept: usize,
}

struct Page {
    user: Arc<str>,
    url: Url,
    active: Duration,
    /// Promises that are not settled.
    open: u64,
    /// How promises ended that will answer nothing, or nothing more.
    unkept: HashMap<Url, PromiseEnd>,
    account: Account,
}

/// What has been counted since the page was last told of.
#[derive(Default, PartialEq, Eq)]
struct Account {
    promised: u64,
    ends: BTreeMap<String, u64>,
    used_bytes: u64,
    wasted_bytes: u64,
    crossed: BTreeMap<String, u64>,
}

/// A promise, as the books know it.
pub(crate) struct Entry<'a> {
    pub(crate) promise: PromiseId,
    pub(crate) page: ExchangeId,
    pub(crate) url: &'a Url,
    /// Body bytes that have come.
    pub(crate) bytes: u64,
}

impl Books {
    pub(crate) fn new(bus: Bus) -> Self {
        Books { bus, pages: BTreeMap::new(), unkept: 0 }
    }

    /// A load of a page begins.
    pub(crate) fn begin(&mut self, page: ExchangeId, user: &User, url: &Url, now: Duration) {
        let (user, url) = (Arc::clone(&user.name), url.clone());
        let account = Account::default();
        self.pages.insert(page, Page { user, url, active: now, open: 0, unkept: HashMap::new(), account });
    }

    /// A redirect has led the document of `page` from one URL to another.
    pub(crate) fn moved(&mut self, page: ExchangeId, from: &Url, to: &Url) {
        if let Some(page) = self.pages.get_mut(&page).filter(|page| page.url == *from) {
            page.url = to.clone();
        }
    }

    /// Something was promised.
    pub(crate) fn promised(&mut self, promise: PromiseId, page: ExchangeId, url: &Url) {
        self.bus.emit(Event::Promised { promise: promise.0, page, url: self.bus.url(url.as_str()) });
        if let Some(page) = self.pages.get_mut(&page) {
            page.open += 1;
            page.account.promised += 1;
        }
    }

    /// A promise answers a request; more of it may come.
    pub(crate) fn used(&mut self, entry: &Entry<'_>) {
        self.tell_end(entry, PromiseEnd::Used, 0);
    }

    /// A promise that was used is whole, or nothing more of it will come. `end` is why it will not answer again; `None`
    /// where the repository does.
    pub(crate) fn used_up(&mut self, entry: &Entry<'_>, end: Option<PromiseEnd>, now: Duration) {
        if let Some(page) = self.pages.get_mut(&entry.page) {
            page.open = page.open.saturating_sub(1);
            page.active = now;
            page.account.used_bytes += entry.bytes;
        }
        if let Some(end) = end {
            self.will_not_answer(entry, end);
        }
    }

    /// Nothing more comes of a promise that was used: its browser has given it up before it was whole, and may have shown none of it.
    pub(crate) fn given_up(&mut self, entry: &Entry<'_>, now: Duration) {
        if let Some(page) = self.pages.get_mut(&entry.page) {
            page.open = page.open.saturating_sub(1);
            page.active = now;
            page.account.wasted_bytes += entry.bytes;
        }
        self.will_not_answer(entry, PromiseEnd::Used);
    }

    /// A promise ends that nobody used.
    pub(crate) fn unused(&mut self, entry: &Entry<'_>, end: PromiseEnd) {
        self.tell_end(entry, end, entry.bytes);
        if let Some(page) = self.pages.get_mut(&entry.page) {
            page.open = page.open.saturating_sub(1);
        }
        self.will_not_answer(entry, end);
    }

    fn will_not_answer(&mut self, entry: &Entry<'_>, end: PromiseEnd) {
        let Some(page) = self.pages.get_mut(&entry.page) else { return };
        self.unkept += usize::from(page.unkept.insert(entry.url.clone(), end).is_none());
        if self.unkept > MOST_UNKEPT
            && let Some(oldest) = self.pages.values_mut().find(|page| !page.unkept.is_empty())
        {
            self.unkept -= std::mem::take(&mut oldest.unkept).len();
        }
    }

    fn tell_end(&mut self, entry: &Entry<'_>, end: PromiseEnd, wasted_bytes: u64) {
        let url = self.bus.url(entry.url.as_str());
        let (promise, bytes) = (entry.promise.0, entry.bytes);
        self.bus.emit(Event::PromiseEnded { promise, url, end, bytes, wasted_bytes });
        if let Some(page) = self.pages.get_mut(&entry.page) {
            count(&mut page.account.ends, end.as_str().to_owned());
            page.account.wasted_bytes += wasted_bytes;
        }
    }

    /// A request crosses.
    pub(crate) fn crossed(
        &mut self,
        exchange: ExchangeId,
        user: &User,
        request: &HeaderMap,
        (why, field): (Crossing, Option<String>),
        now: Duration,
    ) {
        let page = self.page_of(exchange, user, request);
        if let Some(page) = page.and_then(|page| self.pages.get_mut(&page)) {
            page.active = now;
            let reason = match &field {
                Some(field) => format!("{} in {field}", why.as_str()),
                None => why.as_str().to_owned(),
            };
            count(&mut page.account.crossed, reason);
        }
        self.bus.emit(Event::RequestCrossed { exchange, page, why, field });
    }

    /// Why this request crosses though its page had been promised an answer, if it had.
    pub(crate) fn unkept(
        &self,
        exchange: ExchangeId,
        user: &User,
        url: &Url,
        request: &HeaderMap,
    ) -> Option<Crossing> {
        let page = self.pages.get(&self.page_of(exchange, user, request)?)?;
        Some(match page.unkept.get(url)? {
            PromiseEnd::Used => Crossing::Spent,
            PromiseEnd::Cancelled | PromiseEnd::PageLeft => Crossing::Refused,
            PromiseEnd::Lapsed => Crossing::Lapsed,
            PromiseEnd::Lost => Crossing::PromiseLost,
            PromiseEnd::Withdrawn => Crossing::PromiseWithdrawn,
        })
    }

    /// The page that a request belongs to: its own, the one that `Referer` names, else the user's last one there, else
    /// the user's last one. Stylesheets are named as referrers too, and some pages let none be named.
    fn page_of(&self, exchange: ExchangeId, user: &User, request: &HeaderMap) -> Option<ExchangeId> {
        if self.pages.contains_key(&exchange) {
            return Some(exchange);
        }
        let referer = request.get(REFERER).and_then(|value| Url::parse(value.to_str().ok()?).ok());
        let own = || self.pages.iter().rev().filter(|(_, page)| page.user == user.name);
        let found = referer.and_then(|referer| {
            let named = own().find(|(_, page)| page.url == referer);
            named.or_else(|| own().find(|(_, page)| page.url.origin() == referer.origin()))
        });
        found.or_else(|| own().next()).map(|(page, _)| *page)
    }

    /// Tells of the pages that are left, as `is_open` says, or quiet, once all that was promised to them is settled.
    pub(crate) fn close(&mut self, now: Duration, is_open: impl Fn(ExchangeId) -> bool) {
        let (bus, unkept) = (&self.bus, &mut self.unkept);
        self.pages.retain(|id, page| {
            let is_open = is_open(*id);
            let is_quiet = page.active.saturating_add(QUIET) <= now;
            if page.open == 0 && (is_quiet || !is_open) {
                page.tell(*id, bus);
                if !is_open {
                    *unkept -= page.unkept.len();
                }
                return is_open;
            }
            true
        });
    }
}

impl Page {
    /// Tells what was counted since the last time, if anything was.
    fn tell(&mut self, id: ExchangeId, bus: &Bus) {
        let account = std::mem::take(&mut self.account);
        if account == Account::default() {
            return;
        }
        let Account { promised, ends, used_bytes, wasted_bytes, crossed } = account;
        let (user, url) = (self.user.to_string(), bus.url(self.url.as_str()));
        bus.emit(Event::PageSettled {
            page: id,
            user,
            url,
            promised,
            ends,
            used_bytes,
            wasted_bytes,
            crossed,
        });
    }
}

fn count(counts: &mut BTreeMap<String, u64>, word: String) {
    *counts.entry(word).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const START: Duration = Duration::from_secs(100);

    fn user(id: u64) -> User {
        User { id, name: format!("10.0.0.{id}").into() }
    }

    fn url(path: &str) -> Url {
        Url::parse("http://site.test/").unwrap().join(path).unwrap()
    }

    fn from(page: &str) -> HeaderMap {
        let value = HeaderValue::from_str(url(page).as_str()).unwrap();
        HeaderMap::from_iter([(REFERER, value)])
    }

    fn undiscovered() -> (Crossing, Option<String>) {
        (Crossing::Undiscovered, None)
    }

    struct Told {
        books: Books,
        events: farhop_events::Subscription,
    }

    fn books() -> Told {
        let bus = Bus::new();
        let events = bus.subscribe();
        Told { books: Books::new(bus), events }
    }

    impl Told {
        /// Every event so far of which `pick` makes something.
        async fn take<T>(mut self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
            drop(self.books);
            let mut picked = Vec::new();
            while let Some(told) = self.events.next().await {
                picked.extend(pick(&told.unwrap().event));
            }
            picked
        }
    }

    #[tokio::test]
    async fn a_page_is_told_of_once_it_is_left_and_all_that_was_promised_is_settled() {
        let mut told = books();
        let books = &mut told.books;
        let (page, alice) = (ExchangeId(1), user(1));
        books.begin(page, &alice, &url("/"), START);
        books.crossed(page, &alice, &HeaderMap::new(), undiscovered(), START);
        let (style, image) = (url("a.css"), url("a.png"));
        books.promised(PromiseId(1), page, &style);
        books.promised(PromiseId(2), page, &image);
        books.used(&Entry { promise: PromiseId(1), page, url: &style, bytes: 10 });
        let entry = Entry { promise: PromiseId(2), page, url: &image, bytes: 30 };
        books.unused(&entry, PromiseEnd::PageLeft);
        assert_eq!(books.unkept(ExchangeId(2), &alice, &image, &from("/")), Some(Crossing::Refused));
        books.close(START, |_| false);
        assert_eq!(books.pages.len(), 1, "the style sheet is still coming");
        let whole = Entry { promise: PromiseId(1), page, url: &style, bytes: 500 };
        books.used_up(&whole, Some(PromiseEnd::Used), START);
        let again = books.unkept(ExchangeId(3), &alice, &style, &from("/"));
        assert_eq!(again, Some(Crossing::Spent), "it answered once");
        books.close(START, |_| false);
        assert!(books.pages.is_empty());
        let pages = told.take(|event| match event {
            Event::PageSettled { promised, ends, used_bytes, wasted_bytes, crossed, .. } => {
                Some((*promised, ends.clone(), *used_bytes, *wasted_bytes, crossed.clone()))
            }
            _ => None,
        });
        let ends = [("page_left".to_owned(), 1), ("used".to_owned(), 1)].into();
        let crossed = [("undiscovered".to_owned(), 1)].into();
        assert_eq!(pages.await, [(2, ends, 500, 30, crossed)]);
    }

    #[test]
    fn of_promises_without_end_those_of_the_oldest_page_are_forgotten_first() {
        let (mut books, alice) = (Books::new(Bus::new()), user(1));
        let end = |books: &mut Books, page: u64, path: &str| {
            let entry = Entry { promise: PromiseId(0), page: ExchangeId(page), url: &url(path), bytes: 0 };
            books.unused(&entry, PromiseEnd::Lapsed);
        };
        for page in [1, 2] {
            books.begin(ExchangeId(page), &alice, &url(&format!("/{page}")), START);
            end(&mut books, page, "first.png");
        }
        (0..MOST_UNKEPT - 2).for_each(|number| end(&mut books, 2, &format!("{number}.png")));
        let known = |books: &Books, page: &str| {
            books.unkept(ExchangeId(9), &alice, &url("first.png"), &from(page)).is_some()
        };
        assert!(known(&books, "/1") && known(&books, "/2"));
        end(&mut books, 2, "one more.png");
        assert!(!known(&books, "/1") && known(&books, "/2"));
        books.close(START, |_| false);
        assert_eq!((books.pages.len(), books.unkept), (0, 0));
    }

    #[tokio::test]
    async fn a_page_that_stays_open_is_told_of_when_it_is_quiet_and_again_when_more_has_happened() {
        let mut told = books();
        let books = &mut told.books;
        let (page, alice) = (ExchangeId(1), user(1));
        books.begin(page, &alice, &url("/"), START);
        books.crossed(page, &alice, &HeaderMap::new(), undiscovered(), START);
        books.close(START + QUIET / 2, |_| true);
        for wait in [1, 2] {
            books.close(START + QUIET * wait, |_| true);
        }
        let differs = (Crossing::Mismatch, Some("accept".to_owned()));
        books.crossed(ExchangeId(2), &alice, &from("/"), differs, START + QUIET * 3);
        books.close(START + QUIET * 4, |_| true);
        let crossed = told.take(|event| match event {
            Event::PageSettled { crossed, .. } => Some(crossed.clone()),
            _ => None,
        });
        let expected = ["undiscovered", "mismatch in accept"].map(|reason| [(reason.to_owned(), 1)].into());
        assert_eq!(crossed.await, expected);
    }

    #[tokio::test]
    async fn a_request_belongs_to_the_page_that_its_referrer_names_and_never_to_another_users() {
        let mut told = books();
        let books = &mut told.books;
        let (alice, bob) = (user(1), user(2));
        for (page, path) in [(1, "/first"), (2, "/second")] {
            books.begin(ExchangeId(page), &alice, &url(path), START);
        }
        for (exchange, referer) in [(3, "/first"), (4, "/style.css"), (5, "http://else.test/")] {
            books.crossed(ExchangeId(exchange), &alice, &from(referer), undiscovered(), START);
        }
        books.crossed(ExchangeId(6), &alice, &HeaderMap::new(), undiscovered(), START);
        books.crossed(ExchangeId(7), &bob, &from("/first"), undiscovered(), START);
        let pages = told.take(|event| match event {
            Event::RequestCrossed { page, .. } => Some(page.map(|page| page.0)),
            _ => None,
        });
        assert_eq!(pages.await, [Some(1), Some(2), Some(2), Some(2), None]);
    }
}

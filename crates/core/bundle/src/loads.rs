//! Pages that users have open at the remote end, as far as requests tell: which one is left, and whose a request is.
//!
//! A navigation that names a page does not always leave it: it may be a frame's, or another tab's, and over plain HTTP
//! nothing tells. So the page is only taken to be **leaving** then. A browser that truly leaves it gives up what it still asks
//! for in its name as soon as it shows the next document, and asks for nothing more:
//!
//! ```text
//!   open ──a navigation names it──► leaving ──answered──► shown ──nothing of it under way, none for 2 s──► left
//!     ▲                                │
//!     └──no answer, or none to show────┘
//! ```

use crate::matching::{is_navigation, is_speculative};
use http::Method;
use http::header::{self, HeaderMap, HeaderValue};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Pages of one user that are remembered as open; the oldest counts as left when there are more.
const MAX_PER_USER: usize = 64;
/// Pages of all users: most of them went away without a word.
const MAX: usize = 4096;
/// Frames of one page that are remembered, and URLs about which is asked for it.
const MAX_FRAMES: usize = 64;
/// Once the next document is shown: a page that has been silent for so long is left. Scripts that are being run make a page
/// silent, too; to end it then costs round trips, to end it late costs some bytes.
const SILENCE: Duration = Duration::from_secs(2);

/// One load of one document; the exchange that fetched the document serves as its number, so later ones have larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoadId(pub u64);

/// Whether a request asks for a document in a window, as far as its fields tell: a link's, or a form's (search, preview,
/// login), which may be sent by POST. Over plain HTTP, a frame's, too; not what is fetched in case somebody looks at it.
pub fn opens_page(method: &Method, request: &HeaderMap) -> bool {
    matches!(*method, Method::GET | Method::POST) && is_navigation(request) && !is_speculative(request)
}

/// Whether a request says that it is for a document in a frame; over plain HTTP none does.
pub fn opens_frame(request: &HeaderMap) -> bool {
    request.get("sec-fetch-dest").is_some_and(|dest| *dest == "iframe" || *dest == "frame")
}

/// Whether browsers save an answer as a file where they would show another (RFC 6266 §4.2: unknown types count as
/// attachments).
pub fn is_attachment(response: &HeaderMap) -> bool {
    let whole = response.get(header::CONTENT_DISPOSITION).and_then(|value| value.to_str().ok());
    let kind = whole.and_then(|whole| whole.split(';').next()).unwrap_or_default().trim();
    !kind.is_empty() && !kind.eq_ignore_ascii_case("inline")
}

/// Pages taken to be open, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    open: Vec<Open>,
    /// Exchanges that are being answered, each with the page that asks.
    under_way: HashMap<u64, LoadId>,
}

#[derive(Debug)]
struct Open {
    load: LoadId,
    user: Arc<str>,
    page: Url,
    /// Documents of frames that were promised to it, with the `Referer` of their requests.
    frames: Vec<(Url, Option<HeaderValue>)>,
    /// All of those, whether or not they have been asked for.
    framed: Vec<Url>,
    /// What is held at these URLs the origin is asked about, for this page; each with whether it is a document.
    validated: Vec<(Url, bool)>,
    /// Its exchanges in [`Loads::under_way`].
    under_way: usize,
    /// When it was last seen to live.
    active: Duration,
    leaving: Option<Leaving>,
    /// A redirect has led its document to where it is, and nobody has asked for that since.
    is_led: bool,
}

/// A page that may have been left.
#[derive(Debug)]
struct Leaving {
    /// The load for which it may have been.
    to: LoadId,
    /// Whether what any cache may reuse of it is of use there.
    keeps_reusable: bool,
    /// Whether the browser has the answer to `to`.
    shown: bool,
}

impl Loads {
    /// A navigation of `user` begins `load` of `url`, without fragment. Gives the loads that end with it at once, and of
    /// each whether what any cache may reuse of it is of use still.
    pub(crate) fn begin(
        &mut self,
        user: &Arc<str>,
        load: LoadId,
        url: Url,
        request: &HeaderMap,
    ) -> Vec<(LoadId, bool)> {
        // Loads of one document do not go on side by side.
        let again = self.open.iter().filter(|open| open.user == *user && open.page == url);
        let mut ended: Vec<_> = again.map(|open| (open.load, true)).collect();
        let open = |open: &&Open| open.user == *user && !ended.iter().any(|(load, _)| *load == open.load);
        if self.open.iter().filter(open).count() >= MAX_PER_USER
            && let Some(oldest) = self.open.iter().find(open).map(|open| open.load)
        {
            ended.push((oldest, true));
        }
        if self.open.len() - ended.len() >= MAX
            && let Some(oldest) =
                self.open.iter().map(|open| open.load).find(|load| !ended.iter().any(|(own, _)| own == load))
        {
            ended.push((oldest, true));
        }
        self.open.retain(|open| !ended.iter().any(|(load, _)| *load == open.load));
        if let Some(at) = self.named_by(user, &url, request)
            && let Some(open) = self.open.get_mut(at)
        {
            let keeps_reusable = open.page.origin() == url.origin();
            open.leaving = Some(Leaving { to: load, keeps_reusable, shown: false });
        }
        self.open.push(Open {
            load,
            user: Arc::clone(user),
            page: url,
            frames: Vec::new(),
            framed: Vec::new(),
            validated: Vec::new(),
            under_way: 0,
            active: Duration::ZERO,
            leaving: None,
            is_led: false,
        });
        ended
    }

    /// The page that a navigation to `url` names as its referrer, if it is certain which.
    fn named_by(&self, user: &Arc<str>, url: &Url, request: &HeaderMap) -> Option<usize> {
        let referer = Url::parse(referer(request)?).ok()?;
        let own = || self.open.iter().enumerate().filter(|(_, open)| open.user == *user);
        if let Some((at, _)) = own().find(|(_, open)| open.page == referer) {
            return Some(at);
        }
        // Towards another origin, the browser names its own origin only: enough if one page there is open.
        let mut there = own().filter(|(_, open)| open.page.origin() == referer.origin());
        let (at, _) = there.next().filter(|_| referer.origin() != url.origin())?;
        there.next().is_none().then_some(at)
    }

    /// The document of a frame at `url` was promised to `load`, for such a request.
    pub(crate) fn note_frame(&mut self, load: LoadId, url: &Url, request: &HeaderMap) {
        if let Some(open) = self.find(load)
            && open.framed.len() < MAX_FRAMES
        {
            open.frames.push((url.clone(), request.get(header::REFERER).cloned()));
            open.framed.push(url.clone());
        }
    }

    /// Whether a navigation is for the document of a frame that was promised to a page, whatever became of the promise, or about
    /// which the origin was asked for it. Each is of one frame.
    pub(crate) fn is_frame(&mut self, user: &Arc<str>, url: &Url, request: &HeaderMap) -> bool {
        let own = || self.open.iter().filter(|open| open.user == *user);
        if own().any(|open| open.page == *url) {
            return false;
        }
        let referer = request.get(header::REFERER);
        let is_this = |(frame, from): &(Url, Option<HeaderValue>)| frame == url && from.as_ref() == referer;
        self.open.iter_mut().filter(|open| open.user == *user).any(|open| {
            if let Some(place) = open.frames.iter().position(is_this) {
                open.frames.swap_remove(place);
                return true;
            }
            let is_asked_about = |(validated, document): &(Url, bool)| *document && validated == url;
            let place = open.validated.iter().position(is_asked_about).filter(|_| open.is_named_by(request));
            place.map(|place| open.validated.swap_remove(place)).is_some()
        })
    }

    /// The origin is asked about what is held at `url`, for `load`; it may be a `document`.
    pub(crate) fn note_validated(&mut self, load: LoadId, url: Url, document: bool) {
        if let Some(open) = self.find(load)
            && open.validated.len() < MAX_FRAMES
        {
            open.validated.push((url, document));
        }
    }

    /// Whether a navigation is for the document to which a redirect has led a page, and about which the origin was asked for that:
    /// it goes on with this page. Each is asked for once.
    pub(crate) fn is_led(&mut self, user: &Arc<str>, url: &Url, request: &HeaderMap) -> bool {
        let own = self.open.iter_mut().filter(|open| open.user == *user);
        let led = own.filter(|open| open.is_asked_for(url, request)).find_map(|open| {
            let place = open.validated.iter().position(|(validated, _)| validated == url)?;
            Some(open.validated.swap_remove(place))
        });
        led.is_some()
    }

    /// The load whose document a redirect has led to `url`, where this navigation goes on with that; it is told once.
    pub(crate) fn led_to(&mut self, user: &Arc<str>, url: &Url, request: &HeaderMap) -> Option<LoadId> {
        let own = self.open.iter_mut().rev().filter(|open| open.user == *user);
        let led = own.filter(|open| open.is_asked_for(url, request)).find(|open| open.is_led)?;
        led.is_led = false;
        Some(led.load)
    }

    /// `exchange` begins at `now`, a request of `user`: its page lives.
    pub(crate) fn asks(&mut self, exchange: u64, user: &str, url: &Url, request: &HeaderMap, now: Duration) {
        let own = LoadId(exchange);
        let load = if self.contains(own) { Some(own) } else { self.asking(user, url, request) };
        if let Some(load) = load
            && let Some(open) = self.find(load)
        {
            open.leaving.take_if(|leaving| leaving.to == load);
            open.under_way += 1;
            open.active = now;
            self.under_way.insert(exchange, load);
        }
    }

    /// The answer to `load`, at `url`, goes to the browser at `now`, which shows it.
    pub(crate) fn shown(&mut self, load: LoadId, url: &Url, now: Duration) {
        if !self.open.iter().any(|open| open.load == load && open.page == *url) {
            return;
        }
        for open in &mut self.open {
            if let Some(leaving) =
                open.leaving.as_mut().filter(|leaving| leaving.to == load && !leaving.shown)
            {
                leaving.shown = true;
                open.active = now;
            }
        }
    }

    /// `exchange` has ended at `now`, answered or not.
    pub(crate) fn settled(&mut self, exchange: u64, now: Duration) {
        if let Some(load) = self.under_way.remove(&exchange)
            && let Some(open) = self.find(load)
        {
            open.under_way -= 1;
            open.active = now;
        }
        for open in &mut self.open {
            open.leaving.take_if(|leaving| leaving.to == LoadId(exchange) && !leaving.shown);
        }
    }

    /// Its user may have closed it: what was under way for `load` was given up.
    pub(crate) fn doubt(&mut self, load: LoadId) {
        if let Some(open) = self.find(load) {
            // It is left for nothing, unless it asks for more.
            open.leaving.get_or_insert(Leaving { to: load, keeps_reusable: false, shown: true });
        }
    }

    /// The pages that are left by `now`, each with whether what any cache may reuse of it is of use still.
    pub(crate) fn left(&self, now: Duration) -> Vec<(LoadId, bool)> {
        let left = self.open.iter().filter_map(|open| {
            let leaving = open.leaving.as_ref().filter(|leaving| leaving.shown)?;
            let is_silent = open.under_way == 0 && open.active.saturating_add(SILENCE) <= now;
            is_silent.then_some((open.load, leaving.keeps_reusable))
        });
        left.collect()
    }

    /// The document of `load` is at `to` and not at `from`.
    pub(crate) fn moved(&mut self, load: LoadId, from: &Url, to: Url) {
        if let Some(open) = self.find(load).filter(|open| open.page == *from) {
            open.frames.retain(|(url, _)| *url != to);
            (open.page, open.is_led) = (to, true);
        }
    }

    /// The page for which `user` asks: the one whose document this is, once a redirect has led there; else as far as its
    /// `Referer` says: it names the page, or, of what a stylesheet or module asks for, a file of the same origin; the
    /// page opened last, then.
    pub(crate) fn asking(&self, user: &str, url: &Url, request: &HeaderMap) -> Option<LoadId> {
        let led = self.open.iter().rev().find(|open| *open.user == *user && open.is_asked_for(url, request));
        if let Some(led) = led {
            return Some(led.load);
        }
        let referer = Url::parse(referer(request)?).ok()?;
        let own = || self.open.iter().rev().filter(|open| *open.user == *user);
        let named = own().find(|open| open.page == referer);
        named.or_else(|| own().find(|open| open.page.origin() == referer.origin())).map(|open| open.load)
    }

    fn find(&mut self, load: LoadId) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.load == load)
    }

    pub(crate) fn contains(&self, load: LoadId) -> bool {
        self.open.iter().any(|open| open.load == load)
    }

    pub(crate) fn end(&mut self, load: LoadId) {
        self.open.retain(|open| open.load != load);
    }

    /// Whether a request of `user` comes from `load`: it is for its document, to which a redirect led, its `Referer` names
    /// the page or a frame of it, or no page was opened since that could ask alike.
    pub(crate) fn is_of(&self, load: LoadId, user: &Arc<str>, url: &Url, request: &HeaderMap) -> bool {
        if !self.open.iter().any(|open| open.user == *user && open.load > load) {
            return true;
        }
        // Loads of one document do not go on side by side, so its URL says which; where that is the bare origin, only what
        // goes to that origin: towards others, all its pages are named so.
        let page = self.open.iter().find(|open| open.load == load);
        let named = referer(request);
        let is_within = |open: &Open| open.framed.iter().any(|frame| Some(frame.as_str()) == named);
        // A frame that later pages have, too, or that is one, may be theirs.
        let is_theirs = |open: &Open| {
            open.user == *user && open.load > load && (is_within(open) || Some(open.page.as_str()) == named)
        };
        page.is_some_and(|open| {
            let is_named =
                Some(open.page.as_str()) == named || is_within(open) && !self.open.iter().any(is_theirs);
            let tells = |named: Url| {
                let is_origin = named.path() == "/" && named.query().is_none();
                !is_origin || named.origin() == url.origin()
            };
            open.is_asked_for(url, request)
                || is_named && named.and_then(|named| Url::parse(named).ok()).is_some_and(tells)
        })
    }
}

impl Open {
    /// Whether this page, or with a policy that leaves out the rest its origin, is said to ask for it.
    fn is_named_by(&self, request: &HeaderMap) -> bool {
        let named = referer(request).and_then(|referer| Url::parse(referer).ok());
        named.is_some_and(|named| {
            let is_origin = named.path() == "/" && named.query().is_none();
            named == self.page || (is_origin && named.origin() == self.page.origin())
        })
    }

    fn is_asked_for(&self, url: &Url, request: &HeaderMap) -> bool {
        self.page == *url && is_navigation(request)
    }
}

fn referer(request: &HeaderMap) -> Option<&str> {
    request.get(header::REFERER).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse("http://site.test/").unwrap().join(path).unwrap()
    }

    #[test]
    fn a_navigation_goes_on_where_a_redirect_has_led_once() {
        let (mut loads, user, other) = (Loads::default(), Arc::from("anna"), Arc::from("berta"));
        let navigation = HeaderMap::from_iter([
            (header::UPGRADE_INSECURE_REQUESTS, HeaderValue::from_static("1")),
            (header::ACCEPT, HeaderValue::from_static("text/html")),
        ]);
        loads.begin(&user, LoadId(1), url("/"), &navigation);
        assert_eq!(loads.led_to(&user, &url("/"), &navigation), None, "it began here");
        loads.moved(LoadId(1), &url("/"), url("/en/"));
        assert_eq!(loads.led_to(&other, &url("/en/"), &navigation), None);
        assert_eq!(loads.led_to(&user, &url("/en/"), &HeaderMap::new()), None, "no document");
        assert_eq!(loads.led_to(&user, &url("/en/"), &navigation), Some(LoadId(1)));
        assert_eq!(loads.led_to(&user, &url("/en/"), &navigation), None, "it is asked for again");
    }

    #[test]
    fn a_document_about_which_is_asked_for_a_page_is_its_frames_once_where_that_names_it() {
        let (mut loads, user) = (Loads::default(), Arc::from("anna"));
        let from = |referer: &'static str| {
            HeaderMap::from_iter([(header::REFERER, HeaderValue::from_static(referer))])
        };
        loads.begin(&user, LoadId(1), url("/page"), &HeaderMap::new());
        let mut asked_about = |document, asked: &HeaderMap| {
            loads.note_validated(LoadId(1), url("/frame"), document);
            let of = |loads: &mut Loads| loads.is_frame(&user, &url("/frame"), asked);
            (of(&mut loads), of(&mut loads))
        };
        assert_eq!(asked_about(true, &from("http://site.test/page")), (true, false));
        assert_eq!(asked_about(true, &from("http://site.test/")), (true, false), "its policy says no more");
        assert_eq!(asked_about(false, &from("http://site.test/page")), (false, false), "no frame shows it");
        for asked in [HeaderMap::new(), from("http://site.test/other"), from("http://else.test/page")] {
            let mut loads = Loads::default();
            loads.begin(&user, LoadId(1), url("/page"), &HeaderMap::new());
            loads.note_validated(LoadId(1), url("/frame"), true);
            assert!(!loads.is_frame(&user, &url("/frame"), &asked), "{asked:?}");
            assert!(!loads.is_frame(&Arc::from("berta"), &url("/frame"), &from("http://site.test/page")));
        }
    }

    #[test]
    fn the_page_opened_the_longest_ago_counts_as_left_when_users_come_without_end() {
        let (mut loads, fields) = (Loads::default(), HeaderMap::new());
        let mut begin = |number: u64| {
            let url = Url::parse("http://site.test/").unwrap();
            loads.begin(&format!("user {number}").into(), LoadId(number), url, &fields)
        };
        for number in 0..MAX as u64 {
            assert_eq!(begin(number), [], "{number}");
        }
        assert_eq!(begin(MAX as u64), [(LoadId(0), true)]);
        assert_eq!(begin(MAX as u64 + 1), [(LoadId(1), true)]);
    }
}

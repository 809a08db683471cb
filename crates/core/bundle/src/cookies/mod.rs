//! The cookie mirror: what a user's browsers hold, learnt from what crossed to and from them, so that ground can send
//! what they would. In memory only, bounded, and forgotten with the user.
//!
//! It learns from `Set-Cookie` of responses that crossed, and from the `Cookie` fields of real requests, which overrule
//! it: cookies set by script show up so, and what a browser no longer sends is dropped. The order of calls for each
//! exchange is [`Cookies::note_request`], then [`Cookies::note_response`]; [`Cookies::for_request`] at any time. Responses
//! to unasked requests are not noted: their cookies never reach the browser.

mod cookie;
mod jar;
mod set_cookie;

use crate::client_hints::{CLIENT_HINTS, LOW_ENTROPY_HINTS};
use crate::family::Family;
use crate::first_party::FirstParty;
use crate::matching::is_navigation;
use crate::site::{Relation, is_potentially_trustworthy};
use crate::workers::{Asker, Workers};
use farhop_page::Destination;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use jar::Jar;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};
use url::Url;

/// Browsers of one user that are told apart; of more, the one not seen for the longest is forgotten.
const MAX_JARS: usize = 8;
/// Documents of a browser that its requests may belong to, and frames that they name.
const MAX_PAGES: usize = 64;
/// How long a browser has to show its client hints.
const HINTS: Duration = Duration::from_secs(30);
/// How long a page may take to ask for a frame that it names; who asks for that URL later may mean a window.
const FRAME: Duration = Duration::from_secs(30);

/// One browser of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JarId(u64);

/// What is known of a request that was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The browser that sent it.
    pub jar: JarId,
    /// In whose page; `None` where its fields do not tell.
    pub first_party: Option<FirstParty>,
    /// It asks for a document in a frame, though it does not say so.
    pub is_framed: bool,
}

/// What a browser would send as `Cookie`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CookieVerdict {
    /// This, or no such field.
    Send(Option<HeaderValue>),
    /// It holds cookies of which it is not known whether it sends them here.
    Unsure,
}

/// Of all browsers of one user.
#[derive(Debug, Default)]
pub struct Cookies {
    /// The one seen last is last.
    browsers: Vec<Browser>,
    next: u64,
}

#[derive(Debug)]
struct Browser {
    id: JarId,
    agent: Option<HeaderValue>,
    jar: Jar,
    pages: VecDeque<(Url, FirstParty)>,
    /// Frames that its pages name, which over plain HTTP it will ask for as for windows: in which page, and when named.
    frames: VecDeque<(Url, FirstParty, SystemTime)>,
    /// The same within a page's site, to which cookies make no difference.
    near_frames: VecDeque<(Url, SystemTime)>,
    workers: Workers,
    /// As last seen on a request that cookies see as another site's; `None` where none was seen.
    storage_access: Option<Option<HeaderValue>>,
    /// Client hints that it sends unasked to all trustworthy targets, as last seen.
    hints: Vec<(HeaderName, HeaderValue)>,
    /// Those that it sends to who asks for them, as last seen.
    asked_hints: Vec<(HeaderName, HeaderValue)>,
    /// When it was first left to it to show them.
    hints_awaited: Option<SystemTime>,
}

impl Cookies {
    /// A browser asked for `url` with these fields, at `now`.
    pub fn note_request(&mut self, url: &Url, request: &HeaderMap, now: SystemTime) -> Noted {
        let field = joined(request);
        let pairs: Vec<&str> = field.split(';').map(str::trim).filter(|pair| !pair.is_empty()).collect();
        let at = self.choose(url, request, &pairs, now);
        let mut browser = self.browsers.remove(at);
        let first_party = browser.first_party(url, request, now);
        let is_framed = first_party.is_some() && browser.enter_frame(url, request, now);
        if let Some(page) = &first_party {
            if shows_credentials(request, &pairs) {
                let strangers = is_navigation(request) && !is_framed;
                browser.jar.saw(url, page, &pairs, strangers, now);
            }
            browser.note(url, page, request, is_framed);
        }
        let is_framed = browser.enters_near(url, request, now) || is_framed;
        let noted = Noted { jar: browser.id, first_party, is_framed };
        self.browsers.push(browser);
        noted
    }

    /// A response of `url` to the request that was `noted` crossed to the browser.
    pub fn note_response(&mut self, noted: &Noted, url: &Url, response: &HeaderMap, now: SystemTime) {
        let browser = self.browsers.iter_mut().find(|browser| browser.id == noted.jar);
        if let (Some(browser), Some(page)) = (browser, &noted.first_party) {
            for field in response.get_all(header::SET_COOKIE) {
                browser.jar.set(url, page, field.as_bytes(), now);
            }
        }
        if let Some(browser) = self.browsers.iter_mut().find(|browser| browser.id == noted.jar)
            && clears_cookies(url, response)
        {
            // Recorded: those that the same response sets go, too.
            browser.jar.clear(url, now);
        }
    }

    /// This browser will load `url` into a frame in a document of `page`, as that names it.
    pub(crate) fn note_frame(&mut self, jar: JarId, url: &Url, page: &FirstParty, now: SystemTime) {
        // `Sec-Fetch-Dest` tells frames from windows.
        if is_potentially_trustworthy(url) {
            return;
        }
        if let Some(browser) = self.browsers.iter_mut().find(|browser| browser.id == jar) {
            // Within a site a frame holds what a window does.
            if !page.is_cross_site(url) {
                if browser.near_frames.len() >= MAX_PAGES {
                    browser.near_frames.pop_front();
                }
                return browser.near_frames.push_back((url.clone(), now));
            }
            if browser.frames.len() >= MAX_PAGES {
                browser.frames.pop_front();
            }
            browser.frames.push_back((url.clone(), page.clone(), now));
        }
    }

    /// What this browser would send with a request with credentials for `url`, made in `page`.
    pub fn for_request(&self, jar: JarId, url: &Url, page: &FirstParty, now: SystemTime) -> CookieVerdict {
        self.browser(jar).map_or(CookieVerdict::Unsure, |browser| browser.jar.verdict(url, page, now))
    }

    /// What this browser would send with a GET that loads `url` into a window; `strict` says whether `SameSite=Strict`
    /// cookies are sent, as far as that is known.
    pub(crate) fn for_navigation(
        &self,
        jar: JarId,
        url: &Url,
        strict: Option<bool>,
        now: SystemTime,
    ) -> CookieVerdict {
        let browser = self.browser(jar);
        browser.map_or(CookieVerdict::Unsure, |browser| browser.jar.verdict_for_window(url, strict, now))
    }

    /// Whether this browser's `request`, which loaded `url` into a window and was noted, shows its `SameSite=Strict`
    /// cookies; `None` where it had none before that.
    pub(crate) fn showed_strict(
        &self,
        jar: JarId,
        url: &Url,
        request: &HeaderMap,
        now: SystemTime,
    ) -> Option<bool> {
        let field = joined(request);
        let pairs: Vec<&str> = field.split(';').map(str::trim).collect();
        self.browser(jar)?.jar.showed_strict(url, &pairs, now)
    }

    /// This browser will load `url` into a window, though its request will not cross.
    pub fn note_document(&mut self, jar: JarId, url: &Url) -> Noted {
        let first_party = FirstParty::of(url);
        if let Some(browser) = self.browsers.iter_mut().find(|browser| browser.id == jar) {
            browser.remember(url, first_party.clone());
        }
        Noted { jar, first_party: Some(first_party), is_framed: false }
    }

    /// Client hints that this browser sends unasked to all trustworthy targets; none where none was seen.
    pub(crate) fn client_hints(&self, jar: JarId) -> &[(HeaderName, HeaderValue)] {
        self.browser(jar).map_or(&[], |browser| &browser.hints)
    }

    /// What this browser says of `hint` to who asks for it, where it was seen.
    pub(crate) fn asked_hint(&self, jar: JarId, hint: &str) -> Option<&HeaderValue> {
        let all = self.browser(jar).map_or(&[][..], |browser| &browser.asked_hints);
        all.iter().find(|(name, _)| name == hint).map(|(_, value)| value)
    }

    /// See [`Workers::asker`].
    pub(crate) fn asker(
        &self,
        jar: JarId,
        (page, target): (&Url, &Url),
        destination: Destination,
        now: SystemTime,
    ) -> Option<Asker> {
        self.browser(jar)?.workers.asker(page, target, destination, now)
    }

    /// See [`Workers::note`].
    pub(crate) fn note_asker(
        &mut self,
        jar: JarId,
        (page, target): (&Url, &Url),
        destination: Destination,
        asker: Asker,
        now: SystemTime,
    ) {
        if let Some(browser) = self.browsers.iter_mut().find(|browser| browser.id == jar) {
            browser.workers.note(page, target, destination, asker, now);
        }
    }

    /// A page asked for client hints that were not seen: its resources are left to the browser.
    pub(crate) fn await_hints(&mut self, jar: JarId, now: SystemTime) {
        if let Some(browser) = self.browsers.iter_mut().find(|browser| browser.id == jar) {
            browser.hints_awaited.get_or_insert(now);
        }
    }

    /// Whether it was asked for them long ago, so that what was not seen since it does not send.
    pub(crate) fn has_shown_hints(&self, jar: JarId, now: SystemTime) -> bool {
        let awaited = self.browser(jar).and_then(|browser| browser.hints_awaited);
        awaited.is_some_and(|since| now.duration_since(since).is_ok_and(|passed| passed >= HINTS))
    }

    /// `Sec-Fetch-Storage-Access` as this browser sends it with requests that cookies see as another site's.
    pub fn storage_access(&self, jar: JarId) -> Option<HeaderValue> {
        let browser = self.browser(jar)?;
        // Recorded: what both send that know it, until a site is granted more.
        let usual = || {
            matches!(browser.jar.family, Family::Chromium | Family::Firefox)
                .then(|| HeaderValue::from_static("none"))
        };
        browser.storage_access.clone().unwrap_or_else(usual)
    }

    /// Bytes that all this takes, about.
    pub fn size(&self) -> usize {
        self.browsers.iter().map(Browser::size).sum()
    }

    fn browser(&self, jar: JarId) -> Option<&Browser> {
        self.browsers.iter().find(|browser| browser.id == jar)
    }

    /// Index of the browser of this `User-Agent` whose cookies agree best with those sent; a new one if none can be it.
    fn choose(&mut self, url: &Url, request: &HeaderMap, pairs: &[&str], now: SystemTime) -> usize {
        let agent = request.get(header::USER_AGENT);
        let credentials = shows_credentials(request, pairs);
        let agreement = |browser: &Browser| match browser.first_party(url, request, now) {
            Some(page) if credentials => browser.jar.agreement(url, &page, pairs, now),
            _ => Some(0),
        };
        let alike = self.browsers.iter().enumerate().filter(|(_, browser)| browser.agent.as_ref() == agent);
        // Of equals the last, which was seen last.
        let best = alike.filter_map(|(at, browser)| Some((agreement(browser)?, at))).max().map(|(_, at)| at);
        best.unwrap_or_else(|| {
            if self.browsers.len() >= MAX_JARS {
                self.browsers.remove(0);
            }
            self.next += 1;
            self.browsers.push(Browser {
                id: JarId(self.next),
                // A copy: as it came it may be a view of the whole head.
                agent: agent.and_then(|agent| HeaderValue::from_bytes(agent.as_bytes()).ok()),
                jar: Jar::new(Family::of(request)),
                pages: VecDeque::new(),
                frames: VecDeque::new(),
                near_frames: VecDeque::new(),
                workers: Workers::default(),
                storage_access: None,
                hints: Vec::new(),
                asked_hints: Vec::new(),
                hints_awaited: None,
            });
            self.browsers.len() - 1
        })
    }
}

impl Browser {
    fn size(&self) -> usize {
        let agent = self.agent.as_ref().map_or(0, HeaderValue::len);
        // The URL and what page it is count for about as much again.
        let of_page = |url: &Url| 2 * url.as_str().len() + size_of::<(Url, FirstParty)>();
        let pages = self.pages.iter().map(|(url, _)| of_page(url));
        let frames = self.frames.iter().map(|(url, ..)| url);
        let pages = pages.chain(frames.chain(self.near_frames.iter().map(|(url, _)| url)).map(of_page));
        let hints = self
            .hints
            .iter()
            .chain(&self.asked_hints)
            .map(|(_, value)| value.len() + size_of::<(HeaderName, HeaderValue)>());
        size_of::<Self>()
            + agent
            + pages.sum::<usize>()
            + hints.sum::<usize>()
            + self.jar.size()
            + self.workers.size()
    }

    /// In whose page a request is made: its own if it is a document, else that of the document which `Referer` names.
    fn first_party(&self, url: &Url, request: &HeaderMap, now: SystemTime) -> Option<FirstParty> {
        if let Some(at) = self.frame(url, request, now) {
            return Some(self.frames[at].1.clone());
        }
        if is_navigation(request) {
            return Some(FirstParty::of(url));
        }
        let referer = Url::parse(request.get(header::REFERER)?.to_str().ok()?).ok()?;
        // Pages of an origin are alike here, unless one is in a frame; stylesheets' URLs are no pages.
        let is_origin = referer.path() == "/" && referer.query().is_none();
        let named =
            |page: &&(Url, FirstParty)| page.0 == referer || is_origin && page.0.origin() == referer.origin();
        let (page, first_party) = self.pages.iter().rev().find(named)?;
        // From there browsers name the frame's origin; else it is a stylesheet's of the same host that asks.
        if first_party.returns_home(url) && !request.contains_key(header::ORIGIN) {
            return None;
        }
        let told = request.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let agrees = told.is_none_or(|told| told == Relation::between(page, url).as_str().as_bytes());
        agrees.then(|| first_party.clone())
    }

    /// Which of the frames that were named a moment ago this asks for.
    fn frame(&self, url: &Url, request: &HeaderMap, now: SystemTime) -> Option<usize> {
        if request.contains_key("sec-fetch-dest") || !is_navigation(request) {
            return None;
        }
        self.frames.iter().position(|(frame, _, named)| frame == url && is_fresh(*named, now))
    }

    /// Whether it asks for a frame within the page's site, which is asked for once.
    fn enters_near(&mut self, url: &Url, request: &HeaderMap, now: SystemTime) -> bool {
        let asks = !request.contains_key("sec-fetch-dest") && is_navigation(request);
        let named = |(frame, named): &(Url, SystemTime)| frame == url && is_fresh(*named, now);
        let place = self.near_frames.iter().position(named).filter(|_| asks);
        place.and_then(|place| self.near_frames.remove(place)).is_some()
    }

    /// Whether it does; a frame is asked for once.
    fn enter_frame(&mut self, url: &Url, request: &HeaderMap, now: SystemTime) -> bool {
        self.frame(url, request, now).and_then(|at| self.frames.remove(at)).is_some()
    }

    /// Remembers a document and what else the fields tell of the browser.
    fn note(&mut self, url: &Url, page: &FirstParty, request: &HeaderMap, is_framed: bool) {
        if LOW_ENTROPY_HINTS.iter().any(|name| request.contains_key(*name)) {
            let shown =
                |name: &'static str| Some((HeaderName::from_static(name), request.get(name)?.clone()));
            self.hints = LOW_ENTROPY_HINTS.into_iter().filter_map(shown).collect();
        }
        for name in CLIENT_HINTS {
            if let Some(value) = request.get(name) {
                self.asked_hints.retain(|(own, _)| own != name);
                self.asked_hints.push((HeaderName::from_static(name), value.clone()));
            }
        }
        let dest = request.get("sec-fetch-dest").map(HeaderValue::as_bytes);
        let document = match dest {
            Some(b"iframe" | b"frame") => Some(page.framed(url)),
            None if is_framed => Some(page.framed(url)),
            _ => is_navigation(request).then(|| page.clone()),
        };
        if let Some(document) = document {
            self.remember(url, document);
        } else if dest.is_some()
            && page.is_cross_site(url)
            && !page.returns_home(url)
            && !request.contains_key(header::ORIGIN)
        {
            let access = request.get("sec-fetch-storage-access");
            if access.is_some_and(|access| access == "none") {
                self.jar.has_no_access();
            }
            self.storage_access = Some(access.cloned());
        }
    }

    fn remember(&mut self, url: &Url, document: FirstParty) {
        if self.pages.len() >= MAX_PAGES {
            self.pages.pop_front();
        }
        self.pages.push_back((url.clone(), document));
    }
}

fn is_fresh(named: SystemTime, now: SystemTime) -> bool {
    now.duration_since(named).map_or(true, |since| since < FRAME)
}

/// All `Cookie` fields as one (RFC 9113 §8.2.3).
fn joined(request: &HeaderMap) -> String {
    let fields: Vec<String> =
        request.get_all(header::COOKIE).iter().map(|field| text_of(field.as_bytes())).collect();
    fields.join("; ")
}

/// Bytes of a field as text, each as one character: cookies are bytes, in whatever encoding (RFC 6265 §5.4).
fn text_of(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The bytes that [`text_of`] has made a text of.
fn bytes_of(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()
}

/// Clear Site Data, §3.1: only who is trusted may.
fn clears_cookies(url: &Url, response: &HeaderMap) -> bool {
    let values = response.get_all("clear-site-data").into_iter().filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(',')).map(str::trim);
    is_potentially_trustworthy(url) && words.any(|word| matches!(word, "\"cookies\"" | "\"*\""))
}

/// Whether the request was made with credentials, so that cookies which it lacks are not there: a request for CORS
/// may be made without.
fn shows_credentials(request: &HeaderMap, pairs: &[&str]) -> bool {
    if !pairs.is_empty() {
        return true;
    }
    let field = |name: &str| request.get(name).and_then(|value| value.to_str().ok());
    let accept = field("accept").unwrap_or_default();
    match field("sec-fetch-mode") {
        Some(mode) => matches!(mode, "navigate" | "no-cors") && !request.contains_key(header::ORIGIN),
        // A plain-HTTP request that names what it wants is an element's; `*/*` may be a fetch of any kind.
        None => !request.contains_key(header::ORIGIN) && !accept.is_empty() && !accept.starts_with("*/*"),
    }
}

#[cfg(test)]
mod tests;

//! What one browser is taken to hold, learnt from what crossed.

use super::cookie::{Cookie, path_matches};
use super::set_cookie::{SameSite, SetCookie, pair};
use super::{CookieVerdict, bytes_of};
use crate::family::Family;
use crate::first_party::FirstParty;
use http::header::HeaderValue;
use std::collections::HashMap;
use std::time::SystemTime;
use url::Url;

/// What browsers keep at most for a domain; in all, far less than they do: the mirror serves one page's neighbourhood.
const MAX_PER_DOMAIN: usize = 180;
const MAX_COOKIES: usize = 1000;
const MAX_BYTES: usize = 256 * 1024;
/// Places of other sites' pages of which it is remembered that the browser's cookies were seen there.
const MAX_SEEN: usize = 1000;

/// A place in the pages of another site: their partition and the host asked.
type Place = (String, String);
/// Bytes of one of them, about.
const PLACE: usize = 128;

#[derive(Debug)]
pub(super) struct Jar {
    pub(super) family: Family,
    cookies: Vec<Cookie>,
    bytes: usize,
    created: u64,
    /// When a request last showed all cookies that the browser has for a place.
    seen: HashMap<Place, SystemTime>,
    /// Whether the browser takes cookies in pages of other sites: such without and such with `Partitioned`.
    takes: [Option<bool>; 2],
}

impl Jar {
    pub(super) fn new(family: Family) -> Self {
        Jar { family, cookies: Vec::new(), bytes: 0, created: 0, seen: HashMap::new(), takes: [None; 2] }
    }

    /// Bytes that all this takes, about.
    pub(super) fn size(&self) -> usize {
        self.bytes + self.cookies.len() * size_of::<Cookie>() + self.seen.len() * PLACE
    }

    /// A response of `url` in `page` crossed to the browser with this `Set-Cookie` field.
    pub(super) fn set(&mut self, url: &Url, page: &FirstParty, field: &[u8], now: SystemTime) {
        let partition = page.is_cross_site(url).then(|| page.partition());
        let Some(mut new) =
            SetCookie::parse(field, now).and_then(|set| Cookie::set(set, url, partition, self.family, now))
        else {
            return;
        };
        // Recorded: a tab, which RFC 6265bis §5.6 lets pass, is a control character to Chromium.
        if self.family == Family::Chromium && [&new.name, &new.value].iter().any(|text| text.contains('\t')) {
            return;
        }
        // RFC 6265bis §5.7, step 15: what came over plain HTTP leaves secure cookies alone.
        let overlays = |old: &Cookie| {
            old.secure && old.seen_at.is_none() && old.name == new.name && old.domain == new.domain
        };
        if url.scheme() == "http" && !new.secure && self.cookies.iter().any(overlays) {
            return;
        }
        new.created = self.next();
        if let Some(at) = self.cookies.iter().position(|old| old.is_replaced_by(&new)) {
            let old = self.remove(at);
            // Recorded: Chromium keeps the place in the order only where the value stays, Firefox always (as
            // RFC 6265bis §5.7, step 22 has it).
            if old.value == new.value || self.family != Family::Chromium {
                new.created = old.created;
            }
            if old.value == new.value && old.is_live(now) && new.is_live(now) {
                new.changed = old.changed;
                new.told = old.told;
                new.confirmed = old.confirmed;
            }
            new.before = Some(old.value).filter(|value| *value != new.value);
        } else if !new.is_live(now) && !new.is_settling(now) {
            return;
        }
        self.insert(new, now);
    }

    /// A response of `url` had all cookies of its site cleared (Clear Site Data, §4.2.3).
    pub(super) fn clear(&mut self, url: &Url, now: SystemTime) {
        for cookie in self.cookies.iter_mut().filter(|cookie| cookie.is_of_site(url)) {
            (cookie.expires, cookie.changed, cookie.told, cookie.before) = (Some(now), now, Some(now), None);
        }
        self.bytes = self.cookies.iter().map(Cookie::size).sum();
    }

    /// The browser asked for `url` in `page` and sent `pairs` with credentials. `is_navigation` where another site's
    /// page may have led here, so that `SameSite=Strict` cookies are no evidence.
    pub(super) fn saw(
        &mut self,
        url: &Url,
        page: &FirstParty,
        pairs: &[&str],
        is_navigation: bool,
        now: SystemTime,
    ) {
        let partition = page.is_cross_site(url).then(|| page.partition());
        let mut expected = self.held(url, partition.as_deref(), now);
        let mut shown = Vec::new();
        for (name, value) in pairs.iter().map(|text| pair(text)) {
            let named = |at: &&usize| self.cookies[**at].name == name;
            let at = expected
                .iter()
                .filter(named)
                .find(|at| self.cookies[**at].value == value)
                .or_else(|| expected.iter().find(named))
                .copied();
            match at {
                Some(at) => {
                    expected.retain(|other| *other != at);
                    self.confirm(at, value, now);
                    shown.push(self.cookies[at].created);
                }
                None if self.is_being_deleted(url, name, value, now) => {}
                None => {
                    let mut new = Cookie::seen(name, value, url, partition.clone(), now);
                    new.created = self.next();
                    shown.push(new.created);
                    self.insert(new, now);
                }
            }
        }
        self.reorder(&shown);
        let missing: Vec<u64> = expected
            .iter()
            .map(|at| &self.cookies[*at])
            .filter(|cookie| !cookie.is_settling(now))
            .filter(|cookie| !(is_navigation && cookie.same_site == SameSite::Strict))
            .map(|cookie| cookie.created)
            .collect();
        for created in missing {
            self.missed(created, url);
        }
        if partition.is_some() {
            self.saw_all(page, url, now);
        }
    }

    /// The browser has said of a stranger in a page that its cookies do not reach it there (Storage Access Headers, `none`). Firefox says so
    /// too, and keeps for each page what strangers set in it.
    pub(super) fn has_no_access(&mut self) {
        if self.family == Family::Chromium {
            self.takes[0] = Some(false);
        }
    }

    /// Whether `pairs`, sent by a browser, can come from this one: how many agree, `None` if one rules it out.
    pub(super) fn agreement(
        &self,
        url: &Url,
        page: &FirstParty,
        pairs: &[&str],
        now: SystemTime,
    ) -> Option<usize> {
        let partition = page.is_cross_site(url).then(|| page.partition());
        let held = self.held(url, partition.as_deref(), now);
        let (mut equal, mut different) = (0, 0);
        for cookie in held.iter().map(|at| &self.cookies[*at]) {
            let sent = pairs.iter().map(|text| pair(text)).find(|(name, _)| *name == cookie.name);
            match sent {
                Some((_, value)) if value == cookie.value => equal += 1,
                _ if cookie.is_settling(now) || cookie.same_site == SameSite::Strict => {}
                // No script can have changed it; a response would have crossed.
                _ if cookie.http_only && cookie.confirmed => return None,
                Some(_) => different += 1,
                None => {}
            }
        }
        (different == 0 || equal > 0).then_some(equal)
    }

    /// The `Cookie` field for a request with credentials.
    pub(super) fn verdict(&self, url: &Url, page: &FirstParty, now: SystemTime) -> CookieVerdict {
        let partition = page.is_cross_site(url).then(|| page.partition());
        if let Some(partition) = &partition
            && self.is_unsure(url, partition, now)
        {
            return CookieVerdict::Unsure;
        }
        let mut cookies: Vec<&Cookie> =
            self.held(url, partition.as_deref(), now).into_iter().map(|at| &self.cookies[at]).collect();
        if partition.is_some() {
            cookies.retain(|cookie| cookie.confirmed || self.takes(cookie) == Some(true));
        }
        field(cookies)
    }

    /// The `Cookie` field for a GET that loads `url` into a window, with `Strict` cookies or without (RFC 6265bis §5.2); not
    /// sure where that is not known and there are some.
    pub(super) fn verdict_for_window(
        &self,
        url: &Url,
        strict: Option<bool>,
        now: SystemTime,
    ) -> CookieVerdict {
        let held = self.held(url, None, now);
        let is_strict = |cookie: &&Cookie| cookie.same_site == SameSite::Strict;
        if strict.is_none() && held.iter().map(|at| &self.cookies[*at]).any(|cookie| is_strict(&cookie)) {
            return CookieVerdict::Unsure;
        }
        let sent = held.iter().map(|at| &self.cookies[*at]);
        field(sent.filter(|cookie| strict == Some(true) || !is_strict(cookie)).collect())
    }

    /// Whether a browser that has just loaded `url` into a window with `pairs` sent its `Strict` cookies; `None` where it
    /// had none. One that the answer has set since is no evidence.
    pub(super) fn showed_strict(&self, url: &Url, pairs: &[&str], now: SystemTime) -> Option<bool> {
        let held = self.held(url, None, now).into_iter().map(|at| &self.cookies[at]);
        let strict = held.filter(|cookie| cookie.same_site == SameSite::Strict);
        let is_shown = |cookie: &Cookie| pairs.iter().any(|text| pair(text).0 == cookie.name);
        let known: Vec<bool> = strict.filter(|cookie| !cookie.is_settling(now)).map(is_shown).collect();
        (!known.is_empty()).then(|| known.contains(&true))
    }

    /// In a page of another site, browsers send everything, nothing, or what they keep for this partition: only what
    /// was seen there is known.
    fn is_unsure(&self, url: &Url, partition: &str, now: SystemTime) -> bool {
        let host = url.host_str().unwrap_or_default();
        let seen = self.seen.get(&(partition.to_owned(), host.to_owned()));
        self.cookies.iter().filter(|cookie| cookie.is_live(now) && cookie.is_for(url)).any(|cookie| {
            if cookie.partition.as_deref() == Some(partition) {
                !cookie.confirmed && self.takes(cookie).is_none()
            } else {
                let shown = seen.is_some_and(|seen| cookie.changed <= *seen);
                cookie.may_cross(self.family) && self.takes[0] != Some(false) && !shown
            }
        })
    }

    fn takes(&self, cookie: &Cookie) -> Option<bool> {
        self.takes[usize::from(cookie.partitioned)]
    }

    /// Indices of the live cookies for `url` in `partition`.
    fn held(&self, url: &Url, partition: Option<&str>, now: SystemTime) -> Vec<usize> {
        let fits = |cookie: &Cookie| {
            cookie.partition.as_deref() == partition && cookie.is_live(now) && cookie.is_for(url)
        };
        (0..self.cookies.len()).filter(|at| fits(&self.cookies[*at])).collect()
    }

    fn confirm(&mut self, at: usize, value: &str, now: SystemTime) {
        let cookie = &mut self.cookies[at];
        let is_old = cookie.is_settling(now) && cookie.before.as_deref() == Some(value);
        if is_old {
            return;
        }
        cookie.confirmed = true;
        cookie.settle(now);
        if cookie.value != value {
            self.bytes = self.bytes + value.len() - cookie.value.len();
            cookie.value = value.to_owned();
            cookie.changed = now;
        }
        if cookie.partition.is_some() && cookie.seen_at.is_none() {
            self.takes[usize::from(cookie.partitioned)] = Some(true);
        }
    }

    fn is_being_deleted(&self, url: &Url, name: &str, value: &str, now: SystemTime) -> bool {
        self.cookies.iter().any(|cookie| {
            let old = cookie.before.as_deref().unwrap_or(&cookie.value);
            !cookie.is_live(now)
                && cookie.is_settling(now)
                && cookie.name == name
                && old == value
                && cookie.is_for(url)
        })
    }

    /// The browser would have sent this one, had it held it.
    fn missed(&mut self, created: u64, url: &Url) {
        let Some(at) = self.cookies.iter().position(|cookie| cookie.created == created) else { return };
        let cookie = &mut self.cookies[at];
        match cookie.seen_at.take() {
            // It was taken to be for the whole host, and is not.
            Some(path) if path != cookie.path && !path_matches(url.path(), &path) => {
                self.bytes = self.bytes + path.len() - cookie.path.len();
                cookie.path.clone_from(&path);
                cookie.seen_at = Some(path);
            }
            seen_at => {
                if cookie.partition.is_some() && seen_at.is_none() && !cookie.confirmed {
                    self.takes[usize::from(cookie.partitioned)] = Some(false);
                }
                self.remove(at);
            }
        }
    }

    /// Among paths of one length, the order in which a browser sent cookies is the order in which it got them.
    fn reorder(&mut self, shown: &[u64]) {
        let length = |created: u64| {
            self.cookies.iter().find(|cookie| cookie.created == created).map_or(0, |cookie| cookie.path.len())
        };
        let mut sent: HashMap<usize, Vec<u64>> = HashMap::new();
        for created in shown {
            sent.entry(length(*created)).or_default().push(*created);
        }
        let mut places = HashMap::new();
        for sent in sent.into_values() {
            let mut sorted = sent.clone();
            sorted.sort_unstable();
            places.extend(sent.into_iter().zip(sorted));
        }
        for cookie in &mut self.cookies {
            if let Some(place) = places.get(&cookie.created) {
                cookie.created = *place;
            }
        }
    }

    fn saw_all(&mut self, page: &FirstParty, url: &Url, now: SystemTime) {
        if self.seen.len() >= MAX_SEEN
            && let Some(oldest) = self.seen.iter().min_by_key(|(_, at)| **at).map(|(place, _)| place.clone())
        {
            self.seen.remove(&oldest);
        }
        self.seen.insert((page.partition(), url.host_str().unwrap_or_default().to_owned()), now);
    }

    fn next(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    fn insert(&mut self, cookie: Cookie, now: SystemTime) {
        let domain = cookie.domain.clone();
        self.bytes += cookie.size();
        self.cookies.push(cookie);
        let is_over = |jar: &Jar| jar.cookies.len() > MAX_COOKIES || jar.bytes > MAX_BYTES;
        if self.cookies.iter().filter(|cookie| cookie.domain == domain).count() > MAX_PER_DOMAIN {
            self.remove_oldest(|cookie| cookie.domain == domain);
        }
        if is_over(self) {
            let gone = |cookie: &Cookie| !cookie.is_live(now) && !cookie.is_settling(now);
            self.cookies.retain(|cookie| !gone(cookie));
            self.bytes = self.cookies.iter().map(Cookie::size).sum();
        }
        while is_over(self) {
            self.remove_oldest(|_| true);
        }
    }

    fn remove_oldest(&mut self, among: impl Fn(&Cookie) -> bool) {
        let candidates = self.cookies.iter().enumerate().filter(|(_, cookie)| among(cookie));
        if let Some(at) = candidates.min_by_key(|(_, cookie)| cookie.changed).map(|(at, _)| at) {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) -> Cookie {
        let cookie = self.cookies.swap_remove(at);
        self.bytes = self.bytes.saturating_sub(cookie.size());
        cookie
    }
}

/// The `Cookie` field of these, in the order in which browsers send them.
fn field(mut cookies: Vec<&Cookie>) -> CookieVerdict {
    cookies.sort_by_key(|cookie| cookie.rank());
    let pairs: Vec<String> = cookies
        .iter()
        .map(|cookie| match cookie.name.is_empty() {
            true => cookie.value.clone(),
            false => format!("{}={}", cookie.name, cookie.value),
        })
        .collect();
    if pairs.is_empty() {
        return CookieVerdict::Send(None);
    }
    HeaderValue::from_bytes(&bytes_of(&pairs.join("; ")))
        .map_or(CookieVerdict::Unsure, |field| CookieVerdict::Send(Some(field)))
}

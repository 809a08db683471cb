//! How a browser goes on after a redirect: against what browsers really sent (`recorded/redirects.*`), and what is left to
//! them.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Cookies, Mismatch, Navigation, Noted, Unasked, compare};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::collections::BTreeMap;
use support::{CHROMIUM, FIREFOX, at, fields, heads, url};
use url::Url;

/// What the site answers where it leads elsewhere.
fn answers() -> BTreeMap<String, (StatusCode, HeaderMap)> {
    let (_, table) = include_str!("recorded/redirects.page").split_once("\n\n").unwrap();
    let blocks = table.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    blocks
        .map(|block| {
            let mut lines = block.lines();
            let (status, url) = lines.next().unwrap().split_once(' ').unwrap();
            (url.to_owned(), (status.parse().unwrap(), support::read_fields(lines)))
        })
        .collect()
}

/// For each load what came of foreseeing its steps: `exact`, `left`, or the field that differs.
fn replay(recorded: &'static str) -> BTreeMap<&'static str, Vec<String>> {
    let (answers, mut cookies) = (answers(), Cookies::default());
    let mut score: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut foreseen: Option<Option<Unasked>> = None;
    for (number, head) in heads(recorded).into_iter().enumerate() {
        let now = at(number as u64);
        let outcome = foreseen.take().map(|foreseen| match foreseen {
            Some(next) if next.url == head.url => match compare(&next.fields, &head.fields) {
                Ok(()) => "exact".to_owned(),
                Err(Mismatch(name)) => name.to_string(),
            },
            Some(next) => format!("leads to {}", next.url),
            None => "left".to_owned(),
        });
        score.entry(head.load).or_default().extend(outcome);
        let noted = cookies.note_request(&head.url, &head.fields, now);
        let Some((status, response)) = answers.get(head.url.as_str()) else { continue };
        cookies.note_response(&noted, &head.url, response, now);
        let method = if head.fields.contains_key("content-type") { Method::POST } else { Method::GET };
        let navigation = Navigation { method: &method, url: &head.url, fields: &head.fields, jar: noted.jar };
        foreseen = Some(navigation.redirected(*status, response, &cookies, now));
    }
    score
}

/// All exactly, but for a chain that crosses sites and comes back: only Chromium sends `Strict` cookies then.
fn expect() -> BTreeMap<&'static str, Vec<String>> {
    const STEPS: [(&str, usize); 15] = [
        ("typed", 2),
        ("own", 1),
        ("sub", 1),
        ("back", 1),
        ("chain", 3),
        ("login", 1),
        ("found", 1),
        ("reloaded", 0),
        ("away", 1),
        ("home", 1),
        ("quiet", 1),
        ("home again", 1),
        ("loud", 1),
        ("http", 1),
        ("downgrade", 1),
    ];
    let mut score: BTreeMap<_, _> =
        STEPS.into_iter().map(|(load, steps)| (load, vec!["exact".to_owned(); steps])).collect();
    score.insert("back", vec!["left".to_owned()]);
    score
}

#[test]
fn chromium_is_foreseen_wherever_redirects_lead_it() {
    assert_eq!(replay(include_str!("recorded/redirects.heads")), expect());
}

#[test]
fn firefox_is_foreseen_wherever_redirects_lead_it() {
    assert_eq!(replay(include_str!("recorded/firefox-redirects.heads")), expect());
}

/// A browser that has asked for something before.
struct Browser {
    cookies: Cookies,
    noted: Noted,
    url: Url,
    fields: HeaderMap,
}

impl Browser {
    fn asking(address: &str, more: &[(&str, &str)]) -> Self {
        let mut lines = vec![
            ("user-agent", CHROMIUM),
            ("accept", "text/html,*/*;q=0.8"),
            ("accept-encoding", "gzip, deflate"),
            ("upgrade-insecure-requests", "1"),
        ];
        lines.extend_from_slice(more);
        let (mut cookies, url, fields) = (Cookies::default(), url(address), fields(&lines));
        let noted = cookies.note_request(&url, &fields, at(0));
        Browser { cookies, noted, url, fields }
    }

    fn answered(&mut self, response: &HeaderMap) {
        self.cookies.note_response(&self.noted, &self.url, response, at(0));
    }

    fn led(&self, status: u16, response: &HeaderMap) -> Option<Unasked> {
        self.led_after(&Method::GET, status, response)
    }

    fn led_after(&self, method: &Method, status: u16, response: &HeaderMap) -> Option<Unasked> {
        let navigation = Navigation { method, url: &self.url, fields: &self.fields, jar: self.noted.jar };
        navigation.redirected(StatusCode::from_u16(status).unwrap(), response, &self.cookies, at(1))
    }
}

fn to(place: &str) -> HeaderMap {
    fields(&[("location", place)])
}

#[test]
fn a_get_stays_a_get_and_a_form_becomes_one_where_browsers_make_it_so() {
    let browser = Browser::asking("http://site.test/", &[]);
    let form = Browser::asking(
        "http://site.test/",
        &[("origin", "http://site.test"), ("content-type", "text/plain"), ("content-length", "3")],
    );
    for (status, by_form) in [(301, true), (302, true), (303, true), (307, false), (308, false)] {
        let next = browser.led(status, &to("/a")).unwrap();
        assert_eq!((next.url.path(), &next.fields), ("/a", &browser.fields), "{status}");
        let next = form.led_after(&Method::POST, status, &to("/a"));
        assert_eq!(next.map(|next| next.fields), by_form.then(|| browser.fields.clone()), "{status}");
    }
    assert_eq!(browser.led(304, &to("/a")), None);
    assert_eq!(form.led_after(&Method::PUT, 303, &to("/a")), None);
}

#[test]
fn cookies_that_the_redirect_sets_are_sent_to_its_target() {
    let mut browser = Browser::asking("http://site.test/", &[("cookie", "a=1; b=1")]);
    let mut response = to("/in/");
    for cookie in ["c=1; Path=/in", "b=2; Path=/", "a=; Path=/; Max-Age=0", "d=1; Path=/other"] {
        response.append("set-cookie", HeaderValue::from_static(cookie));
    }
    browser.answered(&response);
    let next = browser.led(302, &response).unwrap();
    assert_eq!(next.fields["cookie"], "c=1; b=2");
    let elsewhere = browser.led(302, &to("http://other.test/")).unwrap();
    assert!(!elsewhere.fields.contains_key("cookie"));
}

#[test]
fn strict_cookies_go_along_where_they_did_before_and_leave_to_the_browser_what_is_not_known() {
    let led = |site: &str| {
        let mut browser = Browser::asking(
            "https://site.test/",
            &[("sec-fetch-site", site), ("sec-fetch-dest", "document"), ("sec-fetch-mode", "navigate")],
        );
        let mut response = to("/in");
        response.insert("set-cookie", HeaderValue::from_static("s=1; SameSite=Strict"));
        browser.answered(&response);
        browser.led(302, &response)
    };
    assert_eq!(led("none").unwrap().fields["cookie"], "s=1");
    assert_eq!(led("same-site").unwrap().fields["cookie"], "s=1");
    assert_eq!(led("cross-site"), None, "the first that this browser was given");
    let cross = |from: &str, cookie: &str, place: &str| {
        let mut cookies = Cookies::default();
        let home = url("https://site.test/");
        let metadata =
            [("accept", "text/html"), ("upgrade-insecure-requests", "1"), ("user-agent", CHROMIUM)];
        let metadata = fields(&metadata);
        let noted = cookies.note_request(&home, &metadata, at(0));
        cookies.note_response(&noted, &home, &fields(&[("set-cookie", "s=1; SameSite=Strict")]), at(0));
        let mut request = metadata.clone();
        request.insert("sec-fetch-site", HeaderValue::from_static("cross-site"));
        request.insert("cookie", HeaderValue::from_str(cookie).unwrap());
        let from = url(from);
        let noted = cookies.note_request(&from, &request, at(60));
        let navigation = Navigation { method: &Method::GET, url: &from, fields: &request, jar: noted.jar };
        navigation.redirected(StatusCode::FOUND, &to(place), &cookies, at(60)).map(|next| next.fields)
    };
    assert_eq!(cross("https://site.test/a", "l=1", "/b").unwrap()["cookie"], "l=1");
    assert_eq!(cross("https://site.test/a", "s=1", "/b").unwrap()["cookie"], "s=1");
    assert_eq!(cross("https://far.test/a", "l=1", "https://site.test/b"), None, "browsers do not agree");
}

#[test]
fn what_the_browser_holds_of_the_first_url_says_nothing_of_the_next() {
    let browser = Browser::asking(
        "http://site.test/",
        &[("if-none-match", "\"x\""), ("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT")],
    );
    let next = browser.led(302, &to("/a")).unwrap();
    assert!(!next.fields.contains_key("if-none-match") && !next.fields.contains_key("if-modified-since"));
}

#[test]
fn a_chain_is_as_far_from_who_began_it_as_its_farthest_step() {
    let site = |first: &str, from: &str, target: &str| {
        let metadata =
            [("sec-fetch-site", first), ("sec-fetch-dest", "document"), ("sec-fetch-mode", "navigate")];
        let next = Browser::asking(from, &metadata).led(302, &to(target)).unwrap();
        next.fields["sec-fetch-site"].to_str().unwrap().to_owned()
    };
    let (www, sub, far) = ("https://www.site.test/", "https://sub.site.test/", "https://far.test/");
    assert_eq!(site("same-origin", www, "/a"), "same-origin");
    assert_eq!(site("same-origin", www, sub), "same-site");
    assert_eq!(site("same-origin", www, far), "cross-site");
    assert_eq!(site("same-site", sub, "/a"), "same-site");
    assert_eq!(site("cross-site", far, "/a"), "cross-site");
    assert_eq!(site("none", www, far), "none", "nobody's page led there");
}

#[test]
fn a_referrer_that_was_cut_stays_cut_and_policies_on_the_way_count() {
    let referer = |first: &str, target: &str, policy: &str| {
        let browser = Browser::asking("http://site.test/a", &[("referer", first)]);
        let mut response = to(target);
        response.insert("referrer-policy", HeaderValue::from_str(policy).unwrap());
        let next = browser.led(302, &response).unwrap();
        next.fields.get("referer").map(|value| value.to_str().unwrap().to_owned())
    };
    let page = "http://site.test/page?q";
    let (far, own) = ("http://far.test/", "http://site.test/");
    assert_eq!(referer(page, "/b", "").as_deref(), Some(page));
    assert_eq!(referer(page, far, "").as_deref(), Some(own));
    assert_eq!(referer(page, far, "unsafe-url").as_deref(), Some(page));
    assert_eq!(referer(page, "/b", "no-referrer"), None);
    assert_eq!(referer(page, "/b", "origin").as_deref(), Some(own));
    assert_eq!(referer("http://before.test/", "/b", "unsafe-url").as_deref(), Some("http://before.test/"));
    let whole = "http://before.test/page";
    assert_eq!(referer(whole, far, "").as_deref(), Some(whole), "the policy tells strangers all");
}

#[test]
fn from_plain_http_what_goes_with_secure_requests_is_known_only_once_it_was_seen() {
    let hints =
        [("sec-ch-ua", "\"Chromium\""), ("sec-ch-ua-mobile", "?0"), ("sec-ch-ua-platform", "\"Linux\"")];
    let mut browser = Browser::asking("http://site.test/", &[]);
    let secure = to("https://site.test/");
    assert_eq!(browser.led(301, &secure), None);
    let mut seen = browser.fields.clone();
    for (name, value) in hints {
        seen.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    browser.cookies.note_request(&url("https://other.test/"), &seen, at(0));
    let next = browser.led(301, &secure).unwrap();
    for (name, value) in hints.into_iter().chain([
        ("sec-fetch-site", "none"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-user", "?1"),
        ("sec-fetch-dest", "document"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
    ]) {
        assert_eq!(next.fields[name], value);
    }
    let back = Browser { url: next.url.clone(), fields: next.fields, ..browser };
    let down = back.led(302, &to("http://site.test/a")).unwrap();
    assert_eq!(down.fields["accept-encoding"], "gzip, deflate");
    assert!(down.fields.keys().all(|name| !name.as_str().starts_with("sec-")));
    let agent = ("user-agent", FIREFOX);
    let firefox = Browser::asking("http://site.test/", &[]);
    let mut fields = firefox.fields.clone();
    fields.insert(agent.0, HeaderValue::from_static(agent.1));
    let firefox = Browser { fields, ..firefox };
    assert!(firefox.led(301, &secure).is_some(), "it sends no client hints");
}

#[test]
fn what_may_be_for_one_use_only_is_left_to_the_browser() {
    let browser = Browser::asking("http://site.test/a?q=1", &[]);
    assert!(browser.led(302, &to("http://app.test/callback?code=1")).is_none());
    assert!(browser.led(302, &to("http://www.site.test/a?q=1")).is_some(), "the same under another name");
    assert!(browser.led(302, &to("http://www.site.test/")).is_some());
    assert!(browser.led(302, &to("/b?code=1")).is_some(), "how the browser asks this origin is known");
}

#[test]
fn what_only_the_browser_knows_is_left_to_it() {
    let browser = Browser::asking("http://site.test/", &[]);
    assert_eq!(browser.led(302, &to("http://user:word@site.test/")), None);
    let mut forgets = to("/a");
    forgets.insert("clear-site-data", HeaderValue::from_static("\"cookies\""));
    assert_eq!(browser.led(302, &forgets), None);
    let known = Browser::asking("http://site.test/", &[("authorization", "Basic eDp5")]);
    assert_eq!(known.led(302, &to("/a")), None, "how far it reaches");
    let part = Browser::asking("http://site.test/", &[("range", "bytes=5-")]);
    assert_eq!(part.led(302, &to("/a")), None);
    let tool = Browser::asking("http://site.test/", &[]);
    let mut fields = tool.fields.clone();
    fields.insert("user-agent", HeaderValue::from_static("curl/8.14.1"));
    assert_eq!(Browser { fields, ..tool }.led(302, &to("/a")), None);
    let secure = Browser::asking("https://site.test/", &[("sec-ch-ua", "\"Chromium\"")]);
    let mut asks = to("/a");
    asks.insert("accept-ch", HeaderValue::from_static("Sec-CH-UA, Sec-CH-UA-Model"));
    assert_eq!(secure.led(302, &asks), None, "it will say more than it did");
}

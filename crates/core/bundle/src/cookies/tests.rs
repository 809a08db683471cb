//! What the cookie mirror holds, and what it sends.

use super::*;
use http::header::HeaderName;
use std::time::Duration;

const CHROMIUM: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";
const PAGE: &str = "https://www.site.test/page";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
}

/// One browser of a user.
struct Mirror {
    cookies: Cookies,
    agent: &'static str,
    jar: JarId,
    page: FirstParty,
}

impl Mirror {
    /// It has loaded the page without cookies.
    fn new(agent: &'static str) -> Self {
        let mut mirror =
            Mirror { cookies: Cookies::default(), agent, jar: JarId(0), page: FirstParty::of(&url(PAGE)) };
        mirror.navigates(PAGE, "", 0);
        mirror
    }

    fn request(&self, lines: &[(&str, &str)]) -> HeaderMap {
        let mut request = HeaderMap::new();
        for (name, value) in
            lines.iter().chain(&[("user-agent", self.agent)]).filter(|line| !line.1.is_empty())
        {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.append(name, HeaderValue::from_str(value).unwrap());
        }
        request
    }

    fn navigates(&mut self, to: &str, cookie: &str, now: u64) -> Noted {
        let lines = [("cookie", cookie), ("sec-fetch-dest", "document"), ("sec-fetch-mode", "navigate")];
        let noted = self.cookies.note_request(&url(to), &self.request(&lines), at(now));
        self.jar = noted.jar;
        noted
    }

    /// The page asks for an image.
    fn loads(&mut self, target: &str, cookie: &str, now: u64) -> Noted {
        let site = Relation::between(&url(PAGE), &url(target)).as_str();
        let lines = [
            ("cookie", cookie),
            ("referer", PAGE),
            ("sec-fetch-dest", "image"),
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-site", site),
        ];
        self.cookies.note_request(&url(target), &self.request(&lines), at(now))
    }

    /// The page loads an image, whose response sets a cookie.
    fn is_set(&mut self, target: &str, cookie: &str, now: u64) {
        let sent = match self.at(target, now) {
            CookieVerdict::Send(Some(sent)) => sent.to_str().unwrap().to_owned(),
            _ => String::new(),
        };
        let noted = self.loads(target, &sent, now);
        self.response(&noted, target, cookie, now);
    }

    fn response(&mut self, noted: &Noted, target: &str, cookie: &str, now: u64) {
        let mut response = HeaderMap::new();
        response.insert(header::SET_COOKIE, HeaderValue::from_str(cookie).unwrap());
        self.cookies.note_response(noted, &url(target), &response, at(now));
    }

    fn at(&self, target: &str, now: u64) -> CookieVerdict {
        self.cookies.for_request(self.jar, &url(target), &self.page, at(now))
    }

    /// What would be sent to `target`, empty for nothing.
    fn sends(&self, target: &str, now: u64) -> String {
        match self.at(target, now) {
            CookieVerdict::Send(field) => {
                field.map_or(String::new(), |field| field.to_str().unwrap().to_owned())
            }
            CookieVerdict::Unsure => "unsure".to_owned(),
        }
    }
}

const OWN: &str = "https://www.site.test/";

#[test]
fn domain_path_and_secure_decide_where_a_cookie_goes() {
    for (set, there, not_there) in [
        (
            "a=1",
            &[OWN, "https://www.site.test:81/x"][..],
            &["https://site.test/", "https://b.www.site.test/"][..],
        ),
        ("a=1; Domain=site.test", &["https://site.test/", "https://x.site.test/"], &["https://xsite.test/"]),
        ("a=1; Domain=.SITE.test", &["https://x.site.test/"], &[]),
        (
            "a=1; Path=/p",
            &["https://www.site.test/p", "https://www.site.test/p/q"],
            &[OWN, "https://www.site.test/pq"],
        ),
        ("a=1; Path=/p/", &["https://www.site.test/p/q"], &["https://www.site.test/p"]),
        ("a=1; Domain=other.test", &[], &[OWN, "https://other.test/"]),
        ("a=1; Domain=test", &[], &[OWN]),
        ("__Host-a=1; Secure; Path=/", &[OWN], &[]),
        ("__Host-a=1; Secure; Path=/p", &[], &["https://www.site.test/p"]),
        ("__Host-a=1; Secure; Path=/; Domain=site.test", &[], &[OWN]),
        ("__Secure-a=1; Path=/", &[], &[OWN]),
        ("__Http-a=1; Secure; HttpOnly", &[OWN], &[]),
        ("__Http-a=1; Secure", &[], &[OWN]),
        ("__Host-Http-a=1; Secure; HttpOnly; Path=/", &[OWN], &[]),
        ("__Host-Http-a=1; Secure; Path=/", &[], &[OWN]),
        ("a=1; SameSite=Strict", &[OWN], &[]),
        ("a=1; SameSite=None", &[], &[OWN]),
    ] {
        let mut mirror = Mirror::new(CHROMIUM);
        mirror.is_set("https://www.site.test/x", set, 0);
        for target in there {
            assert!(mirror.sends(target, 1).ends_with("a=1"), "{set} goes to {target}");
        }
        for target in not_there {
            assert!(!mirror.sends(target, 1).contains("a=1"), "{set} does not go to {target}");
        }
    }
}

#[test]
fn cookies_are_bytes_in_whatever_encoding() {
    for value in [&b"a=J\xf6rg"[..], "a=J\u{f6}rg".as_bytes()] {
        let value = HeaderValue::from_bytes(value).unwrap();
        let sent = |mirror: &Mirror| mirror.at(OWN, 1);
        // As a response has set it, and as a request has shown it.
        let mut told = Mirror::new(CHROMIUM);
        let noted = told.loads(OWN, "", 0);
        let mut response = HeaderMap::new();
        response.insert(header::SET_COOKIE, value.clone());
        told.cookies.note_response(&noted, &url(OWN), &response, at(0));
        assert_eq!(sent(&told), CookieVerdict::Send(Some(value.clone())));
        let mut seen = Mirror::new(CHROMIUM);
        let mut request = seen.request(&[("sec-fetch-dest", "document"), ("sec-fetch-mode", "navigate")]);
        request.insert(header::COOKIE, value.clone());
        seen.jar = seen.cookies.note_request(&url(PAGE), &request, at(0)).jar;
        assert_eq!(sent(&seen), CookieVerdict::Send(Some(value)));
    }
}

#[test]
fn secure_cookies_do_not_come_from_or_go_to_plain_http() {
    let plain = "http://www.site.test/";
    let mut mirror = Mirror::new(CHROMIUM);
    let noted = mirror.navigates(plain, "", 0);
    mirror.response(&noted, plain, "a=1; Secure", 0);
    mirror.page = FirstParty::of(&url(plain));
    assert_eq!(mirror.sends(plain, 1), "");
    let noted = mirror.navigates(OWN, "", 1);
    mirror.response(&noted, OWN, "a=1; Secure", 1);
    let noted = mirror.navigates(plain, "", 2);
    mirror.response(&noted, plain, "a=2", 2);
    mirror.page = FirstParty::of(&url(OWN));
    assert_eq!(mirror.sends(OWN, 3), "a=1", "secure cookies are left alone");
}

#[test]
fn cookies_expire() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.is_set(OWN, "a=1; Max-Age=60", 0);
    mirror.is_set(OWN, "b=1", 0);
    assert_eq!(mirror.sends(OWN, 59), "a=1; b=1");
    assert_eq!(mirror.sends(OWN, 60), "b=1");
    mirror.is_set(OWN, "b=; Max-Age=0", 60);
    assert_eq!(mirror.sends(OWN, 61), "");
}

#[test]
fn longer_paths_come_first_then_the_older() {
    let mut mirror = Mirror::new(CHROMIUM);
    for set in ["a=1; Path=/", "b=1; Path=/", "c=1; Path=/p"] {
        mirror.is_set(OWN, set, 0);
    }
    assert_eq!(mirror.sends("https://www.site.test/p", 1), "c=1; a=1; b=1");
}

#[test]
fn a_changed_value_keeps_its_place_except_in_chromium() {
    for (agent, expected) in [(CHROMIUM, "b=1; a=2"), (FIREFOX, "a=2; b=1")] {
        let mut mirror = Mirror::new(agent);
        for set in ["a=1; Path=/", "b=1; Path=/", "a=2; Path=/"] {
            mirror.is_set(OWN, set, 0);
        }
        assert_eq!(mirror.sends(OWN, 1), expected);
    }
}

#[test]
fn what_the_browser_sends_overrules_the_mirror() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.is_set(OWN, "a=1", 0);
    mirror.is_set(OWN, "b=1", 0);
    mirror.is_set(OWN, "c=1", 0);
    mirror.loads(OWN, "script=1; c=1; a=2", 60);
    assert_eq!(
        mirror.sends(OWN, 61),
        "script=1; c=1; a=2",
        "changed, dropped, set by script, and in its order"
    );
}

#[test]
fn a_request_that_was_on_its_way_does_not_undo_a_response() {
    let mut mirror = Mirror::new(FIREFOX);
    mirror.is_set(OWN, "a=1", 0);
    mirror.is_set(OWN, "k=1", 0);
    mirror.is_set(OWN, "a=2", 60);
    mirror.is_set(OWN, "b=1", 60);
    mirror.loads(OWN, "a=1; k=1", 61);
    assert_eq!(mirror.sends(OWN, 62), "a=2; k=1; b=1");
    mirror.is_set(OWN, "b=; Max-Age=0", 120);
    mirror.loads(OWN, "a=2; k=1; b=1", 121);
    assert_eq!(mirror.sends(OWN, 122), "a=2; k=1", "deleted");
    mirror.loads(OWN, "a=1; k=1", 200);
    assert_eq!(mirror.sends(OWN, 201), "a=1; k=1", "long after it is news");
}

#[test]
fn what_a_response_has_set_and_a_request_has_shown_is_gone_as_soon_as_it_is_not_sent() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.is_set(OWN, "sid=alice", 60);
    mirror.navigates(OWN, "", 61);
    assert_eq!(mirror.sends(OWN, 61), "sid=alice", "the request may have been sent before");
    mirror.navigates(OWN, "sid=alice", 62);
    mirror.navigates(OWN, "", 62);
    assert_eq!(mirror.sends(OWN, 62), "sid=alice", "it may have been overtaken");
    mirror.navigates(OWN, "", 64);
    assert_eq!(mirror.sends(OWN, 64), "", "the user has logged out");
}

#[test]
fn what_only_requests_have_shown_needs_no_time_to_settle() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.navigates(OWN, "script=1", 60);
    mirror.navigates(OWN, "", 61);
    assert_eq!(mirror.sends(OWN, 61), "", "it is gone");
    let first = mirror.navigates(OWN, "sid=alice", 62).jar;
    let second = mirror.navigates(OWN, "sid=bob", 63).jar;
    assert_ne!(first, second, "nothing in common: another browser");
    assert_eq!(mirror.navigates(OWN, "sid=alice", 64).jar, first);
    assert_eq!(mirror.sends(OWN, 64), "sid=alice");
}

#[test]
fn a_request_without_credentials_is_no_evidence() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.is_set(OWN, "a=1", 0);
    for lines in [
        [("origin", OWN), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "script")],
        [("origin", ""), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "manifest")],
    ] {
        let mut request = mirror.request(&lines);
        request.insert(header::REFERER, HeaderValue::from_static(PAGE));
        mirror.cookies.note_request(&url(OWN), &request, at(60));
    }
    assert_eq!(mirror.sends(OWN, 61), "a=1");
    mirror.loads(OWN, "", 62);
    assert_eq!(mirror.sends(OWN, 63), "");
}

#[test]
fn a_navigation_from_another_site_does_not_disprove_strict_cookies() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.is_set(OWN, "a=1; SameSite=Strict", 0);
    mirror.is_set(OWN, "b=1; SameSite=Lax", 0);
    mirror.navigates(OWN, "b=1", 60);
    assert_eq!(mirror.sends(OWN, 61), "a=1; b=1");
}

#[test]
fn a_cookie_of_unknown_path_shrinks_to_where_it_was_seen() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.loads("https://www.site.test/app/x", "a=1", 0);
    assert_eq!(mirror.sends("https://www.site.test/other", 1), "a=1");
    mirror.loads("https://www.site.test/other", "", 60);
    assert_eq!(mirror.sends("https://www.site.test/other", 61), "");
    assert_eq!(mirror.sends("https://www.site.test/app/y", 61), "a=1");
}

const FAR: &str = "https://far.test/a.png";
const FOR_ALL: &str = "a=1; SameSite=None; Secure; Path=/";

#[test]
fn in_another_sites_page_nothing_is_known_until_it_was_seen() {
    for (cookie, expected) in [("a=1", "a=1"), ("", "")] {
        let mut mirror = Mirror::new(CHROMIUM);
        assert_eq!(mirror.sends(FAR, 0), "", "nothing is held");
        let noted = mirror.navigates("https://far.test/", "", 0);
        mirror.response(&noted, "https://far.test/", FOR_ALL, 0);
        assert_eq!(mirror.sends(FAR, 1), "unsure");
        mirror.loads(FAR, cookie, 60);
        assert_eq!(mirror.sends(FAR, 61), expected);
        mirror.page = FirstParty::of(&url("https://third.test/"));
        assert_eq!(mirror.sends(FAR, 61), "unsure", "browsers may keep each site's page apart");
    }
}

#[test]
fn same_site_cookies_stay_at_home() {
    let mut mirror = Mirror::new(CHROMIUM);
    for set in ["a=1; SameSite=Lax", "b=1; SameSite=Strict", "c=1"] {
        let noted = mirror.navigates("https://far.test/", "", 0);
        mirror.response(&noted, "https://far.test/", set, 0);
    }
    assert_eq!(mirror.sends(FAR, 1), "");
    let mut firefox = Mirror::new(FIREFOX);
    let noted = firefox.navigates("https://far.test/", "", 0);
    firefox.response(&noted, "https://far.test/", "c=1", 0);
    assert_eq!(firefox.sends(FAR, 1), "unsure", "where Lax is not the default");
}

#[test]
fn a_browser_that_refuses_cookies_of_strangers_is_found_out() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.is_set(FAR, FOR_ALL, 0);
    mirror.is_set(FAR, "b=1; SameSite=None; Secure; Path=/; Partitioned", 0);
    assert_eq!(mirror.sends(FAR, 1), "unsure");
    mirror.loads(FAR, "b=1", 60);
    assert_eq!(mirror.sends(FAR, 61), "b=1");
    mirror.is_set("https://other.test/", FOR_ALL, 62);
    assert_eq!(mirror.sends("https://other.test/", 63), "", "and is not asked again for each");
    mirror.is_set("https://other.test/", "c=1; SameSite=None; Secure; Partitioned", 62);
    assert_eq!(mirror.sends("https://other.test/", 63), "c=1");
}

#[test]
fn browsers_of_one_user_are_kept_apart_by_agent_and_by_what_they_send() {
    let mut mirror = Mirror::new(CHROMIUM);
    let noted = mirror.navigates(OWN, "", 0);
    mirror.response(&noted, OWN, "session=1; HttpOnly", 0);
    let first = mirror.navigates(OWN, "session=1; theme=dark", 60).jar;
    mirror.agent = FIREFOX;
    let other_agent = mirror.navigates(OWN, "session=1; theme=dark", 61).jar;
    assert_ne!(first, other_agent);
    mirror.agent = CHROMIUM;
    let second = mirror.navigates(OWN, "session=2; theme=dark", 62).jar;
    assert_ne!(first, second, "no script changes an HttpOnly cookie");
    assert_eq!(mirror.navigates(OWN, "session=1; theme=light", 63).jar, first);
    assert_eq!(mirror.sends(OWN, 64), "session=1; theme=light");
    assert_eq!(mirror.navigates(OWN, "session=2; theme=dark", 65).jar, second);
    assert_eq!(mirror.sends(OWN, 66), "session=2; theme=dark");
}

#[test]
fn cookies_that_have_nothing_in_common_are_another_browsers() {
    let mut mirror = Mirror::new(FIREFOX);
    let first = mirror.navigates(OWN, "a=1; b=1", 0).jar;
    assert_eq!(mirror.navigates(OWN, "a=1; b=2", 60).jar, first, "a script may have changed one");
    assert_ne!(mirror.navigates(OWN, "a=3; b=3", 120).jar, first);
    assert_eq!(mirror.navigates(OWN, "a=1; b=2", 121).jar, first);
}

#[test]
fn of_many_browsers_the_one_not_seen_for_the_longest_is_forgotten() {
    let mut cookies = Cookies::default();
    let mut agent = |n: usize| {
        let mut request = HeaderMap::new();
        request.insert(header::USER_AGENT, HeaderValue::from_str(&format!("agent {n}")).unwrap());
        cookies.note_request(&url(OWN), &request, at(0)).jar
    };
    let first = agent(0);
    (1..MAX_JARS).for_each(|n| _ = agent(n));
    assert_eq!(agent(0), first);
    agent(MAX_JARS);
    assert_eq!(agent(0), first, "it was seen since");
    let second = agent(1);
    assert_ne!(second, JarId(2), "it was forgotten");
    assert_eq!(
        cookies.for_request(JarId(2), &url(OWN), &FirstParty::of(&url(OWN)), at(0)),
        CookieVerdict::Unsure
    );
}

#[test]
fn a_site_that_sets_very_many_cookies_takes_bounded_memory() {
    let mut mirror = Mirror::new(CHROMIUM);
    let noted = mirror.navigates(OWN, "", 0);
    for n in 0..2000 {
        mirror.response(&noted, OWN, &format!("a{n}={}", "x".repeat(2000)), n);
    }
    let sent = mirror.sends(OWN, 2000);
    assert!(sent.len() < 256 * 1024, "{}", sent.len());
    assert!(sent.contains("a1999=") && !sent.contains("a0="), "the oldest went first");
}

#[test]
fn a_stylesheet_that_asks_is_not_taken_for_a_page() {
    let mut mirror = Mirror::new(CHROMIUM);
    let request = mirror.request(&[("referer", "https://far.test/a.css"), ("sec-fetch-dest", "image")]);
    assert_eq!(mirror.cookies.note_request(&url(FAR), &request, at(0)).first_party, None);
}

#[test]
fn storage_access_is_as_the_browser_was_seen_to_send_it() {
    let mut mirror = Mirror::new(CHROMIUM);
    assert_eq!(mirror.cookies.storage_access(mirror.jar).unwrap(), "none");
    let lines = [
        ("referer", PAGE),
        ("sec-fetch-dest", "image"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-storage-access", "active"),
    ];
    mirror.cookies.note_request(&url(FAR), &mirror.request(&lines), at(0));
    assert_eq!(mirror.cookies.storage_access(mirror.jar).unwrap(), "active");
    mirror.loads(FAR, "", 1);
    assert_eq!(mirror.cookies.storage_access(mirror.jar), None, "an older one does not know the field");
}

#[test]
fn a_browser_that_says_that_strangers_have_no_access_sends_them_nothing_new() {
    for (access, expected) in [("none", CookieVerdict::Send(None)), ("inactive", CookieVerdict::Unsure)] {
        let mut mirror = Mirror::new(CHROMIUM);
        let lines = [
            ("referer", PAGE),
            ("sec-fetch-dest", "image"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-storage-access", access),
        ];
        mirror.cookies.note_request(&url(FAR), &mirror.request(&lines), at(0));
        let own = mirror.navigates(FAR, "", 1);
        mirror.response(&own, FAR, "f=1; SameSite=None; Secure", 1);
        assert_eq!(mirror.cookies.for_request(mirror.jar, &url(FAR), &mirror.page, at(2)), expected);
    }
}

#[test]
fn a_cookie_with_a_tab_is_taken_by_others_than_chromium() {
    for (agent, expected) in [(CHROMIUM, "b=1"), (FIREFOX, "a=x\ty; b=1")] {
        let mut mirror = Mirror::new(agent);
        mirror.is_set(OWN, "a=x\ty", 0);
        mirror.is_set(OWN, "b=1", 0);
        assert_eq!(mirror.sends(OWN, 1), expected);
    }
}

#[test]
fn a_site_that_clears_its_cookies_has_none() {
    for (told, cleared) in
        [("\"cookies\"", true), ("\"cache\", \"*\"", true), ("\"storage\"", false), ("cookies", false)]
    {
        let mut mirror = Mirror::new(CHROMIUM);
        let far = mirror.navigates("https://far.test/", "", 0);
        mirror.response(&far, "https://far.test/", "f=1", 0);
        mirror.is_set(OWN, "a=1; Domain=site.test", 0);
        mirror.is_set(OWN, "h=1; HttpOnly", 0);
        let noted = mirror.navigates("https://www.site.test/logout", "a=1; h=1", 60);
        let mut response = HeaderMap::new();
        response.insert("clear-site-data", HeaderValue::from_static(told));
        response.insert(header::SET_COOKIE, HeaderValue::from_static("new=1"));
        mirror.cookies.note_response(&noted, &url("https://www.site.test/logout"), &response, at(60));
        assert_eq!(mirror.sends(OWN, 61), if cleared { "" } else { "a=1; h=1; new=1" }, "{told}");
        mirror.page = FirstParty::of(&url("https://far.test/"));
        assert_eq!(mirror.sends("https://far.test/", 61), "f=1");
        mirror.page = FirstParty::of(&url(OWN));
        // It was on its way; then something new is there.
        mirror.loads(OWN, if cleared { "a=1; h=1" } else { "a=1; h=1; new=1" }, 62);
        assert_eq!(mirror.sends(OWN, 63), if cleared { "" } else { "a=1; h=1; new=1" }, "{told}");
    }
    let mut plain = Mirror::new(CHROMIUM);
    let here = "http://www.site.test/";
    let noted = plain.navigates(here, "a=1", 0);
    let mut response = HeaderMap::new();
    response.insert("clear-site-data", HeaderValue::from_static("\"cookies\""));
    plain.cookies.note_response(&noted, &url(here), &response, at(0));
    plain.page = FirstParty::of(&url(here));
    assert_eq!(plain.sends(here, 1), "a=1", "over plain HTTP nobody may");
}

#[test]
fn a_host_that_is_written_out_to_the_root_clears_no_cookies_of_the_site_without_the_dot() {
    let mut mirror = Mirror::new(CHROMIUM);
    mirror.is_set(OWN, "a=1; Domain=site.test", 0);
    let rooted = "https://www.site.test./";
    let noted = mirror.navigates(rooted, "", 60);
    let mut response = HeaderMap::new();
    response.insert("clear-site-data", HeaderValue::from_static("\"cookies\""));
    mirror.cookies.note_response(&noted, &url(rooted), &response, at(60));
    assert_eq!(mirror.sends(OWN, 61), "a=1");
}

#[test]
fn over_plain_http_a_frame_that_a_page_names_is_no_window() {
    let (page, frame) = ("http://page.test/", "http://far.test/frame");
    let after = |named: bool, seconds: u64| {
        let mut mirror = Mirror::new(CHROMIUM);
        let top = mirror.navigates(page, "", 0);
        if named {
            mirror.cookies.note_frame(top.jar, &url(frame), &FirstParty::of(&url(page)), at(0));
        }
        let lines =
            [("accept", "text/html,*/*;q=0.8"), ("upgrade-insecure-requests", "1"), ("referer", page)];
        let asked = mirror.request(&lines);
        let noted = mirror.cookies.note_request(&url(frame), &asked, at(seconds));
        mirror.response(&noted, frame, "sid=1", seconds);
        mirror.page = noted.first_party.unwrap().framed(&url(frame));
        let sent = mirror.sends("http://far.test/a.png", seconds + 1);
        // Asked for once more it is a window, as far as is known.
        let again = mirror.cookies.note_request(&url(frame), &asked, at(seconds + 20));
        (sent, again.first_party)
    };
    let window = Some(FirstParty::of(&url(frame)));
    assert_eq!(after(true, 1), (String::new(), window.clone()));
    assert_eq!(after(false, 1), ("sid=1".to_owned(), window.clone()));
    assert_eq!(after(true, 60), ("sid=1".to_owned(), window), "too late to be the frame");
}

#[test]
fn over_plain_http_a_frame_within_its_site_is_told_from_a_window_once() {
    let (page, frame) = ("http://page.test/", "http://page.test/frame");
    let mut mirror = Mirror::new(CHROMIUM);
    let top = mirror.navigates(page, "", 0);
    mirror.cookies.note_frame(top.jar, &url(frame), &FirstParty::of(&url(page)), at(0));
    let lines = [("accept", "text/html,*/*;q=0.8"), ("upgrade-insecure-requests", "1"), ("referer", page)];
    let asked = mirror.request(&lines);
    let mut is_framed =
        |target: &str, seconds: u64| mirror.cookies.note_request(&url(target), &asked, at(seconds)).is_framed;
    assert!(!is_framed("http://page.test/else", 1));
    assert!(is_framed(frame, 1));
    assert!(!is_framed(frame, 2));
}

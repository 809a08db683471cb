//! What is asked for where a resource's redirects led, as Chromium 156 was seen to ask.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Budget, Cookies, Decision, Load, NeverUnasked, Plan, Skip, Unasked, Way};
use farhop_page::{Destination, Hint, Mode, Source};
use http::StatusCode;
use http::header::HeaderMap;
use support::{CHROMIUM, FIREFOX, at, fields, hint, url};
use url::Url;

const A: &str = "http://a.localhost";
const B: &str = "http://b.localhost";
const C: &str = "http://c.localhost";

/// A page that a browser with cookies has loaded.
struct Page {
    plan: Plan,
    cookies: Cookies,
}

impl Page {
    fn of(agent: &str, policy: &str) -> Self {
        let (at_page, mut cookies) = (url("http://a.localhost/p1?q"), Cookies::default());
        let request = fields(&[
            ("user-agent", agent),
            ("accept", "text/html,*/*;q=0.8"),
            ("sec-fetch-dest", "document"),
        ]);
        let response = fields(&[
            ("set-cookie", "l=1; SameSite=Lax"),
            ("set-cookie", "s=1; SameSite=Strict"),
            ("content-security-policy", policy),
        ]);
        let noted = cookies.note_request(&at_page, &request, at(0));
        cookies.note_response(&noted, &at_page, &response, at(0));
        Page { plan: Plan::new(Load::new(at_page, request, &response, &noted), Budget::default()), cookies }
    }

    fn decide(&mut self, hint: &Hint, target: &Url, way: &Way) -> Result<Unasked, Skip> {
        let never = NeverUnasked::new(1);
        match self.plan.decide_after(None, hint, target, way, &never, &self.cookies, at(1)) {
            Decision::Fetch(request, _) => Ok(request),
            Decision::Skip(why) => Err(why),
        }
    }

    /// Follows what `hint` names along these answers; `None` once the browser goes no further.
    fn follow(&mut self, hint: &Hint, answers: &[HeaderMap]) -> Option<Result<Unasked, Skip>> {
        let (mut way, mut request) = (Way::default(), self.decide(hint, &hint.url, &Way::default()));
        for answer in answers {
            let Ok(asked) = &request else { break };
            let (next, target) = self.plan.load().led(hint, &way, asked, StatusCode::FOUND, answer)?;
            way = next;
            request = self.decide(hint, &target, &way);
        }
        Some(request)
    }

    fn image(&mut self, from: &str, mode: Mode, answers: &[HeaderMap]) -> Option<Result<Unasked, Skip>> {
        let image = hint(url(from), Destination::Image, mode, Source::Image);
        self.follow(&image, answers)
    }
}

fn chromium() -> Page {
    Page::of(CHROMIUM, "")
}

fn to(place: &str) -> HeaderMap {
    fields(&[("location", place)])
}

fn to_for_all(place: &str) -> HeaderMap {
    fields(&[("location", place), ("access-control-allow-origin", "*")])
}

fn told<'a>(request: &'a Unasked, name: &str) -> Option<&'a str> {
    request.fields.get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn what_a_step_was_not_told_the_next_one_is_not() {
    let whole = Some("http://a.localhost/p1?q");
    let hidden = |place: &str| fields(&[("location", place), ("referrer-policy", "no-referrer")]);
    let told_all = |place: &str| fields(&[("location", place), ("referrer-policy", "unsafe-url")]);
    let (b, a) = (format!("{B}/x"), format!("{A}/y"));
    for (from, answers, expected) in [
        (A, vec![to("/x")], whole),
        (A, vec![to(&b)], Some("http://a.localhost/")),
        (A, vec![hidden(&b)], None),
        (A, vec![hidden("/x"), to("/y")], None),
        (A, vec![told_all(&b)], whole),
        (B, vec![to(&a)], Some("http://a.localhost/")),
        (B, vec![told_all(&a)], Some("http://a.localhost/")),
    ] {
        let request = chromium().image(&format!("{from}/r"), Mode::NoCors, &answers).unwrap().unwrap();
        assert_eq!(told(&request, "referer"), expected, "{from} {answers:?}");
    }
}

#[test]
fn who_has_been_at_a_strangers_comes_from_there() {
    for (from, answers, site) in [
        (A, vec![to("/x")], "same-origin"),
        (B, vec![to("http://a.localhost/x")], "cross-site"),
        (A, vec![to("http://b.localhost/x"), to("http://a.localhost/x")], "cross-site"),
    ] {
        let request = chromium().image(&format!("{from}/r"), Mode::NoCors, &answers).unwrap().unwrap();
        assert_eq!(told(&request, "sec-fetch-site"), Some(site), "{from} {answers:?}");
        assert_eq!(told(&request, "cookie"), Some("l=1; s=1"), "Chromium asks whose the target is alone");
        assert_eq!(told(&request, "origin"), None);
    }
    let back = [to("http://a.localhost/x")];
    let firefox = Page::of(FIREFOX, "").image(&format!("{B}/r"), Mode::NoCors, &back);
    assert_eq!(firefox, Some(Err(Skip::UnsureOfCookies)));
}

#[test]
fn a_request_for_cors_that_a_stranger_sent_on_has_no_origin_and_no_cookies() {
    for (from, place, origin, cookie) in [
        (A, "http://a.localhost/x", Some("http://a.localhost"), Some("l=1; s=1")),
        (A, "http://b.localhost/x", Some("http://a.localhost"), None),
        (B, "http://b.localhost/x", Some("http://a.localhost"), None),
        (B, "http://a.localhost/x", Some("null"), None),
        (B, "http://c.localhost/x", Some("null"), None),
    ] {
        let request =
            chromium().image(&format!("{from}/r"), Mode::Cors, &[to_for_all(place)]).unwrap().unwrap();
        assert_eq!(
            (told(&request, "origin"), told(&request, "cookie")),
            (origin, cookie),
            "{from} to {place}"
        );
    }
}

#[test]
fn a_redirect_that_may_not_be_seen_is_not_followed() {
    let mut page = chromium();
    let there = format!("{C}/x");
    assert_eq!(page.image(&format!("{B}/1"), Mode::Cors, &[to(&there)]), None, "no word of CORS");
    let for_us = |with_credentials| {
        let mut answer = to(&there);
        answer.insert("access-control-allow-origin", A.parse().unwrap());
        if with_credentials {
            answer.insert("access-control-allow-credentials", "true".parse().unwrap());
        }
        answer
    };
    assert!(page.image(&format!("{B}/2"), Mode::Cors, &[for_us(false)]).is_some());
    assert_eq!(page.image(&format!("{B}/3"), Mode::CorsWithCredentials, &[for_us(false)]), None);
    assert_eq!(page.image(&format!("{B}/4"), Mode::CorsWithCredentials, &[to_for_all(&there)]), None);
    assert!(page.image(&format!("{B}/5"), Mode::CorsWithCredentials, &[for_us(true)]).is_some());
    assert!(page.image(&format!("{A}/6"), Mode::Cors, &[to(&there)]).is_some(), "its own");
    let part = hint(url(&format!("{A}/7.svg")), Destination::Image, Mode::SameOrigin, Source::Use);
    assert_eq!(page.follow(&part, &[to(&there)]), Some(Err(Skip::NotThisBrowser)));
}

#[test]
fn a_policy_is_not_asked_for_paths_that_redirects_lead_to() {
    let mut page = Page::of(CHROMIUM, "img-src http://b.localhost/ok/");
    let from = format!("{B}/ok/r");
    assert!(page.image(&from, Mode::NoCors, &[to("/other/x.png")]).unwrap().is_ok());
    let mut page = Page::of(CHROMIUM, "img-src http://b.localhost/ok/");
    let elsewhere = page.image(&from, Mode::NoCors, &[to("http://c.localhost/ok/x.png")]);
    assert_eq!(elsewhere, Some(Err(Skip::ContentPolicy)));
    assert_eq!(page.image(&format!("{B}/r"), Mode::NoCors, &[]), Some(Err(Skip::ContentPolicy)));
}

#[test]
fn endless_redirects_end() {
    let answers: Vec<HeaderMap> = (0..20).map(|n| to(&format!("/{n}"))).collect();
    assert_eq!(chromium().image(&format!("{A}/r"), Mode::NoCors, &answers), None);
    assert_eq!(chromium().image(&format!("{A}/r"), Mode::NoCors, &[to("/r")]), None);
}

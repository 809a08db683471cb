//! A book of promises with one in it, and the ways to ask it.

use crate::support::{fields, url};
use farhop_bundle::{Answer, LoadId, Mismatch, PromiseId, Promises, WhyAsk};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub(crate) const PAGE: &str = "http://site.test/page";
pub(crate) const IMAGE: &str = "http://site.test/a.png";
pub(crate) const ONE: PromiseId = PromiseId(1);
pub(crate) const LOAD: LoadId = LoadId(1);
pub(crate) const BASIC: [(&str, &str); 3] =
    [("accept", "image/*"), ("cookie", "a=1"), ("accept-language", "de")];
pub(crate) const SHARED: [(&str, &str); 2] = [("cache-control", "max-age=60"), ("vary", "accept-language")];
pub(crate) const DATE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";
pub(crate) const NOT_PROMISED: Answer = Answer::Ask(WhyAsk::NotPromised);
pub(crate) const SPENT: Answer = Answer::Ask(WhyAsk::Spent);

/// A request like the promised one, with `changes`; an empty value removes.
pub(crate) fn request(changes: &[(&str, &str)]) -> HeaderMap {
    let mut map = fields(&BASIC);
    for (name, value) in changes {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.remove(&name);
        if !value.is_empty() {
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
    }
    map
}

pub(crate) fn navigation(referer: Option<&str>) -> HeaderMap {
    let mut map = fields(&[("accept", "text/html,*/*;q=0.8"), ("upgrade-insecure-requests", "1")]);
    if let Some(referer) = referer {
        map.insert("referer", HeaderValue::from_str(referer).unwrap());
    }
    map
}

pub(crate) fn user(name: &str) -> Arc<str> {
    Arc::from(name)
}

pub(crate) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The book of a user who loads the page, with one promise.
pub(crate) fn book() -> Promises {
    let mut book = Promises::new(100, 100);
    assert!(book.begin_load(&user("u"), LOAD, &url(PAGE), &navigation(None)).is_empty());
    assert!(book.promise(ONE, &user("u"), LOAD, url(IMAGE), fields(&BASIC)));
    book
}

pub(crate) fn head(book: &mut Promises, response: &[(&str, &str)]) -> bool {
    head_after(book, 0, response)
}

/// The same so many seconds after the request that led to it.
pub(crate) fn head_after(book: &mut Promises, waited: u64, response: &[(&str, &str)]) -> bool {
    let wall = SystemTime::UNIX_EPOCH + seconds(1_000_000);
    book.head(ONE, StatusCode::OK, &fields(response), seconds(1), (wall - seconds(waited), wall))
}

pub(crate) fn ask(book: &mut Promises, changes: &[(&str, &str)]) -> Answer {
    ask_at(book, changes, 2)
}

pub(crate) fn ask_at(book: &mut Promises, changes: &[(&str, &str)], now: u64) -> Answer {
    book.ask(&user("u"), &Method::GET, &url(IMAGE), &request(changes), seconds(now))
}

pub(crate) fn differs(name: &'static str) -> Answer {
    Answer::Ask(WhyAsk::Field(Mismatch(HeaderName::from_static(name))))
}

//! Heads as tests write them: one line, fields parted by `|`.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use farhop_htotp::RequestHead;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// `name: value | name: value`.
pub(crate) fn fields(lines: &str) -> HeaderMap {
    let lines = lines.split('|').map(str::trim).filter(|line| !line.is_empty());
    let field = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.trim().parse::<HeaderName>().unwrap(), value.trim().parse::<HeaderValue>().unwrap())
    };
    lines.map(field).collect()
}

/// A GET of `http://site.test/` with these fields.
pub(crate) fn request(lines: &str) -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: "site.test".into(),
        path: "/".into(),
        fields: fields(lines),
    }
}

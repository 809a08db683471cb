//! What the tests of unasked requests share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test file uses its part

pub mod planned;

use farhop_page::{Destination, Hint, Initiator, Mode, ReferrerPolicy, Source};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::time::{Duration, SystemTime};
use url::Url;

pub const CHROMIUM: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
pub const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";

pub fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// Seconds after a fixed instant.
pub fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
}

pub fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    map
}

/// A hint of the document's own mark-up.
pub fn hint(url: Url, destination: Destination, mode: Mode, source: Source) -> Hint {
    Hint::new(url, destination, mode, source)
}

pub fn image(address: &str) -> Hint {
    hint(url(address), Destination::Image, Mode::NoCors, Source::Image)
}

pub fn by(hint: Hint, initiator: Initiator) -> Hint {
    Hint { initiator, ..hint }
}

pub fn with_policy(hint: Hint, policy: ReferrerPolicy) -> Hint {
    Hint { referrer_policy: Some(policy), ..hint }
}

/// One recorded request.
pub struct Head {
    pub load: &'static str,
    pub url: Url,
    pub fields: HeaderMap,
}

/// `name: value` lines.
pub fn read_fields<'a>(lines: impl Iterator<Item = &'a str>) -> HeaderMap {
    let lines: Vec<(&str, &str)> = lines.map(|line| line.split_once(": ").unwrap()).collect();
    fields(&lines)
}

/// The blocks of a `.heads` file.
pub fn heads(text: &'static str) -> Vec<Head> {
    text.split("\n\n")
        .filter(|block| !block.trim().is_empty())
        .map(|block| {
            let mut lines = block.trim().lines();
            let load = lines.next().unwrap().strip_prefix("# load: ").unwrap();
            let mut request = lines.next().unwrap().split(' ');
            assert!(matches!(request.next(), Some("GET" | "POST")));
            Head { load, url: Url::parse(request.next().unwrap()).unwrap(), fields: read_fields(lines) }
        })
        .collect()
}

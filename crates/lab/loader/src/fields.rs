//! The request fields of an object: Firefox's, so that a proxy which treats browsers by name meets one it knows. Pure.

use crate::graph::{Kind, Object};

/// What every request of the loader has.
const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";

/// Every field but `Host` and those of the connection, in Firefox's order.
pub(crate) fn of(object: &Object) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("User-Agent", USER_AGENT.to_owned()),
        ("Accept", accept(object.kind).to_owned()),
        ("Accept-Language", "en-US,en;q=0.9".to_owned()),
        ("Accept-Encoding", "gzip, deflate".to_owned()),
    ];
    if let Some(by) = object.named_by.as_ref().filter(|_| object.cors) {
        fields.push(("Origin", by.origin().ascii_serialization()));
    }
    fields.extend(object.named_by.as_ref().map(|by| ("Referer", by.to_string())));
    if object.kind == Kind::Document {
        fields.push(("Upgrade-Insecure-Requests", "1".to_owned()));
    }
    fields.push(("Priority", priority(object.kind).to_owned()));
    fields
}

fn accept(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        Kind::Style => "text/css,*/*;q=0.1",
        Kind::Image => "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
        Kind::Font => "application/font-woff2;q=1.0,application/font-woff;q=0.9,*/*;q=0.8",
        Kind::Script | Kind::Other => "*/*",
    }
}

fn priority(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "u=0, i",
        Kind::Style | Kind::Script => "u=2",
        Kind::Font => "u=2",
        Kind::Image => "u=5, i",
        Kind::Other => "u=4",
    }
}

//! Client hints (RFC 8942; Client Hints Infrastructure): which of them go with an unasked request, and what they say.

use crate::cookies::Cookies;
use crate::family::Family;
use crate::plan::Skip;
use crate::site::{Relation, is_potentially_trustworthy};
use crate::unasked::{Load, copy};
use farhop_page::{Destination, Hint, Source};
use http::header::{HeaderMap, HeaderName};
use std::time::SystemTime;

/// Client hints that browsers send unasked, to every trustworthy origin.
pub(crate) const LOW_ENTROPY_HINTS: [&str; 3] = ["sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"];

/// Those that Chromium sends to an origin that asks for them in `Accept-CH` (Client Hints Infrastructure, §4.2), as far as
/// they are the same for all that a page asks for.
pub(crate) const CLIENT_HINTS: [&str; 15] = [
    "device-memory",
    "dpr",
    "sec-ch-device-memory",
    "sec-ch-dpr",
    "sec-ch-prefers-color-scheme",
    "sec-ch-prefers-reduced-motion",
    "sec-ch-prefers-reduced-transparency",
    "sec-ch-ua-arch",
    "sec-ch-ua-bitness",
    "sec-ch-ua-form-factors",
    "sec-ch-ua-full-version",
    "sec-ch-ua-full-version-list",
    "sec-ch-ua-model",
    "sec-ch-ua-platform-version",
    "sec-ch-ua-wow64",
];
/// And those that change with the window or the network.
const PASSING_HINTS: [&str; 6] =
    ["downlink", "ect", "rtt", "sec-ch-viewport-height", "sec-ch-viewport-width", "viewport-width"];

impl Load {
    /// The document asks for client hints, by `Accept-CH` or by a `<meta http-equiv=accept-ch>` with this content.
    pub fn ask_client_hints(&mut self, content: &str) {
        let names = content.split(',').map(|name| name.trim().to_ascii_lowercase());
        let known =
            |name: &String| CLIENT_HINTS.contains(&name.as_str()) || PASSING_HINTS.contains(&name.as_str());
        let names: Vec<String> =
            names.filter(|name| known(name) && !self.asked_hints.contains(name)).collect();
        self.asked_hints.extend(names);
    }

    /// What a page asks for was left to the browser for its client hints ([`Skip::UnknownHints`]): it shows them now, or it has
    /// none.
    pub fn awaits_hints(&self, cookies: &mut Cookies, now: SystemTime) {
        cookies.await_hints(self.jar, now);
    }
}

/// Adds them to the fields of a request for a trustworthy target.
///
/// # Errors
/// Where the browser would say what was not seen.
pub(crate) fn client_hints(
    fields: &mut HeaderMap,
    load: &Load,
    hint: &Hint,
    relation: Relation,
    cookies: &Cookies,
    now: SystemTime,
) -> Result<(), Skip> {
    // Recorded: what a 103 response has preloaded is asked for before there is a document to say what it tells, and what a worker
    // runs is asked for by no document.
    let is_workers = matches!(hint.destination, Destination::Worker | Destination::SharedWorker);
    if (is_workers || hint.source == Source::EarlyHints) && load.family == Family::Chromium {
        return Ok(());
    }
    for name in LOW_ENTROPY_HINTS {
        copy(fields, &load.request, HeaderName::from_static(name));
    }
    // A page over plain HTTP does not show them, nor does one that a service worker has asked for (recorded).
    let is_silent = load.is_by_worker() && !fields.contains_key(LOW_ENTROPY_HINTS[0]);
    if !is_potentially_trustworthy(&load.url) || is_silent {
        let seen = cookies.client_hints(load.jar);
        if is_silent && seen.is_empty() && !cookies.has_shown_hints(load.jar, now) {
            return Err(Skip::UnknownHints);
        }
        fields.extend(seen.iter().cloned());
    }
    // The others are sent to the origin that asked for them with Accept-CH, which the document's request shows.
    if relation == Relation::SameOrigin {
        // Recorded: Chromium blurs its figure anew for the document and for what it asks for.
        let asks =
            |name: &str| load.request.contains_key(name) || load.asked_hints.iter().any(|it| it == name);
        if load.family == Family::Chromium && asks("downlink") {
            return Err(Skip::UnknownHints);
        }
        let more: Vec<HeaderName> = load
            .request
            .keys()
            .filter(|name| is_client_hint(name.as_str()) && !fields.contains_key(*name))
            .cloned()
            .collect();
        for name in more {
            copy(fields, &load.request, name);
        }
        // Recorded: what the page has just asked for goes with its own resources at once.
        if load.family == Family::Chromium {
            for name in load.asked_hints.iter().filter(|name| !load.request.contains_key(name.as_str())) {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Skip::UnknownHints)?;
                match cookies.asked_hint(load.jar, name.as_str()) {
                    Some(value) => _ = fields.insert(name, value.clone()),
                    None if cookies.has_shown_hints(load.jar, now) => {}
                    None => return Err(Skip::UnknownHints),
                }
            }
        }
    }
    Ok(())
}

fn is_client_hint(name: &str) -> bool {
    name.starts_with("sec-ch-") || CLIENT_HINTS.contains(&name) || PASSING_HINTS.contains(&name)
}

//! Whether a promised request and a browser's request would get the same answer. `docs/matching.md` is this module
//! as a table.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Fields that cannot change the answer to a GET without content, so they are not compared.
const NOT_COMPARED: [&str; 10] = [
    // Of one connection or one hop (RFC 9110 §7.6.1, §11.7, §7.6.3): they never reach the origin as the browser sent
    // them.
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "upgrade",
    "proxy-authorization",
    "proxy-authenticate",
    "via",
    // Part of the URL, which is compared (RFC 9110 §7.2).
    "host",
    // RFC 9218 §5: about the order of delivery, not about what is delivered.
    "priority",
];

/// Fields that even a response which any shared cache may reuse does not excuse: DESIGN.md names the first three; the
/// others ask the cache itself for something.
pub(crate) static ALWAYS_COMPARED: [HeaderName; 11] = [
    header::ORIGIN,
    header::AUTHORIZATION,
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::CACHE_CONTROL,
    header::PRAGMA,
    // CSP Embedded Enforcement §3: answered by what the page demands of a frame.
    HeaderName::from_static("sec-required-csp"),
];

/// Fields that make a GET conditional or partial.
pub(crate) const CONDITIONAL: [HeaderName; 6] = [
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

/// Those that a full answer tells itself, as a cache does (RFC 9111 §4.3.2): [`crate::not_modified`].
const EVALUATED: [HeaderName; 2] = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];

/// Fields to which a private response stays bound, whatever its `Vary` names: behind one address may be several people, so
/// it stays with the browser, the language, the cookies and the credentials that it was given to. `Origin` since a page
/// that asks with another may be given other permissions (CORS).
pub const PRIVATE_TO: [HeaderName; 5] =
    [header::ORIGIN, header::AUTHORIZATION, header::COOKIE, header::USER_AGENT, header::ACCEPT_LANGUAGE];

/// Fields that browsers write by themselves, whoever asks, besides [`NOT_COMPARED`], [`CONDITIONAL`] and those that scripts
/// may not write (Fetch, "forbidden request-header").
const FAMILIAR: [&str; 24] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "authorization",
    "cache-control",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "device-memory",
    "dnt",
    "downlink",
    "dpr",
    "ect",
    "origin",
    "pragma",
    "purpose",
    "referer",
    "rtt",
    "save-data",
    "upgrade-insecure-requests",
    "user-agent",
    "x-requested-with",
];

/// The fields of a request that a script or a program has added: each may say who asks, and a private response stays bound
/// to it as well.
pub fn unfamiliar(request: &HeaderMap) -> impl Iterator<Item = &HeaderName> {
    request.keys().filter(|name| {
        let text = name.as_str();
        !FAMILIAR.contains(&text)
            && !NOT_COMPARED.contains(&text)
            && !CONDITIONAL.contains(name)
            && !text.starts_with("sec-")
    })
}

/// The field that keeps a promise from answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(pub HeaderName);

/// Compares the fields of a promised request with those of a browser's. Whether what the browser holds has changed may be
/// asked where the promise is of the whole answer: it is to be evaluated against that.
///
/// # Errors
/// The first field found to differ.
pub fn compare(promised: &HeaderMap, asked: &HeaderMap) -> Result<(), Mismatch> {
    let names = promised.keys().chain(asked.keys());
    for name in names.filter(|name| !NOT_COMPARED.contains(&name.as_str())) {
        same(promised, asked, name)?;
    }
    Ok(())
}

/// Whether one asks for what the other does, for the same use, in words that were not foreseen. What a browser says differently from one
/// time to the next (cookies, of which more is known elsewhere, and whether it reloads) is none of these.
pub(crate) fn is_unforeseen(promised: &HeaderMap, asked: &HeaderMap) -> bool {
    const USES: [HeaderName; 3] = [
        header::ORIGIN,
        HeaderName::from_static("sec-fetch-dest"),
        HeaderName::from_static("sec-fetch-mode"),
    ];
    const PASSING: [HeaderName; 5] =
        [header::AUTHORIZATION, header::CACHE_CONTROL, header::COOKIE, header::PRAGMA, header::REFERER];
    let is_lasting = |name: &&HeaderName| {
        !NOT_COMPARED.contains(&name.as_str()) && !CONDITIONAL.contains(name) && !PASSING.contains(name)
    };
    let mut names = promised.keys().chain(asked.keys()).filter(is_lasting);
    USES.iter().all(|name| same(promised, asked, name).is_ok())
        && names.any(|name| same(promised, asked, name).is_err())
}

/// A number, below 2^62, that is the same for two requests for one thing where [`compare`] finds no difference, but for conditions,
/// which the answer to either is judged by.
pub fn sameness(request: &HeaderMap) -> u64 {
    let counts = |name: &&HeaderName| !NOT_COMPARED.contains(&name.as_str()) && !EVALUATED.contains(name);
    let mut names: Vec<&HeaderName> = request.keys().filter(counts).collect();
    names.sort_unstable_by_key(|name| name.as_str());
    let mut hash = blake3::Hasher::new();
    for name in names {
        if name == header::CACHE_CONTROL && wants_anew(&HeaderMap::new(), request) {
            continue;
        }
        for value in request.get_all(name) {
            // None of these stands in a name or a value.
            hash.update(name.as_str().as_bytes()).update(b":").update(value.as_bytes()).update(b"\n");
        }
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize().as_bytes()[..8]);
    u64::from_be_bytes(first) >> 2
}

/// Compares only what a response that a shared cache may reuse still depends on; its `Vary` is judged apart.
pub(crate) fn compare_always(promised: &HeaderMap, asked: &HeaderMap) -> Result<(), Mismatch> {
    ALWAYS_COMPARED.iter().try_for_each(|name| same(promised, asked, name))
}

fn same(promised: &HeaderMap, asked: &HeaderMap, name: &HeaderName) -> Result<(), Mismatch> {
    if name == header::CACHE_CONTROL && wants_anew(promised, asked) {
        return Ok(());
    }
    if EVALUATED.contains(name) && !CONDITIONAL.iter().any(|name| promised.contains_key(name)) {
        return Ok(());
    }
    // Values in order, byte by byte: anything looser would have to know every field's meaning.
    if promised.get_all(name).iter().eq(asked.get_all(name).iter()) {
        Ok(())
    } else {
        Err(Mismatch(name.clone()))
    }
}

/// Whether a request wants nothing that was kept before it (RFC 9111 §5.2.1.1; reloads do), where the promise is of an answer
/// that was fetched without a word about that: one that was fetched for the same page load is not older than it.
pub(crate) fn wants_anew(promised: &HeaderMap, asked: &HeaderMap) -> bool {
    let mut values = asked.get_all(header::CACHE_CONTROL).iter();
    let is_zero = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"max-age=0");
    !promised.contains_key(header::CACHE_CONTROL)
        && values.next().is_some_and(is_zero)
        && values.next().is_none()
}

/// Whether a request is not to be answered from what was kept before it.
pub(crate) fn passes_caches_by(request: &HeaderMap) -> bool {
    request.contains_key(header::CACHE_CONTROL) || request.contains_key(header::PRAGMA)
}

/// Whether a request with these fields loads a document into a window, or, over plain HTTP, into a frame, as far as fields
/// tell.
pub fn is_navigation(request: &HeaderMap) -> bool {
    match text(request, "sec-fetch-dest") {
        Some("document") => true,
        // Recorded: of a service worker that passes a navigation on. To scripts the mode is forbidden (Fetch, "new Request").
        Some("empty") => text(request, "sec-fetch-mode") == Some("navigate"),
        Some(_) => false,
        // Browsers name text/html first for documents and for frames, and ask for upgrades there only (Upgrade Insecure
        // Requests, §3.2.1); scripts may ask for text/html, too.
        None => {
            request.contains_key(header::UPGRADE_INSECURE_REQUESTS)
                && text(request, "accept").is_some_and(|accept| accept.starts_with("text/html"))
        }
    }
}

/// Whether a document is asked for that nobody may ever look at: `Sec-Purpose`, or `Purpose` before that, says so for what
/// pages have prefetched or prerendered.
pub fn is_speculative(request: &HeaderMap) -> bool {
    ["sec-purpose", "purpose"].iter().any(|name| {
        text(request, name)
            .is_some_and(|purpose| purpose.split([';', ',']).any(|word| word.trim() == "prefetch"))
    })
}

fn text<'a>(request: &'a HeaderMap, name: &str) -> Option<&'a str> {
    request.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in the first column of the table under the `nth` heading line of the document, in lower case.
    fn table(nth: usize) -> Vec<String> {
        let document = include_str!("../../../../docs/matching.md");
        let mut tables = document.split("|---|---|\n").skip(1);
        let rows = tables.nth(nth).expect("the document has the table");
        let rows = rows.lines().take_while(|line| line.starts_with('|'));
        let cells: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).collect();
        let names = cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let mut names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
        names.sort();
        names
    }

    fn request(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        fields.iter().map(field).collect()
    }

    #[test]
    fn what_a_script_asks_for_is_no_navigation_though_it_wants_html() {
        let html = ("accept", "text/html, */*; q=0.01");
        assert!(!is_navigation(&request(&[html, ("x-requested-with", "XMLHttpRequest")])));
        assert!(!is_navigation(&request(&[html, ("sec-fetch-dest", "empty")])));
        assert!(is_navigation(&request(&[html, ("upgrade-insecure-requests", "1")])));
        assert!(is_navigation(&request(&[("sec-fetch-dest", "document")])));
        assert!(is_navigation(&request(&[("sec-fetch-dest", "empty"), ("sec-fetch-mode", "navigate")])));
    }

    #[test]
    fn what_is_fetched_in_case_somebody_looks_at_it_says_so() {
        for (name, value) in
            [("sec-purpose", "prefetch"), ("sec-purpose", "prefetch;prerender"), ("purpose", "prefetch")]
        {
            assert!(is_speculative(&request(&[(name, value)])), "{name}: {value}");
        }
        assert!(!is_speculative(&request(&[("purpose", "form")])));
    }

    #[test]
    fn what_is_added_to_a_browsers_own_fields_may_say_who_asks() {
        let own = [
            ("accept", "*/*"),
            ("cookie", "a=1"),
            ("if-none-match", "\"1\""),
            ("priority", "u=1"),
            ("sec-fetch-dest", "empty"),
            ("x-requested-with", "XMLHttpRequest"),
        ];
        assert_eq!(unfamiliar(&request(&own)).count(), 0);
        let more = request(&[("accept", "*/*"), ("x-token", "alice"), ("api-key", "1")]);
        let mut names: Vec<&str> = unfamiliar(&more).map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["api-key", "x-token"]);
    }

    #[test]
    fn requests_are_the_same_where_a_promise_of_one_would_answer_the_other() {
        let own = [("accept", "image/webp"), ("cookie", "a=1"), ("referer", "http://a.test/")];
        let with = |more: &[(&'static str, &'static str)]| request(&[&own[..], more].concat());
        let promised = with(&[]);
        let number = sameness(&promised);
        assert!(number < 1 << 62);
        for (more, same) in [
            (&[][..], true),
            (&[("priority", "u=1"), ("via", "1.1 a"), ("if-none-match", "\"1\"")], true),
            (&[("cache-control", "max-age=0")], true),
            (&[("cache-control", "no-cache")], false),
            (&[("dnt", "1")], false),
        ] {
            let asked = with(more);
            assert_eq!(compare(&promised, &asked).is_ok(), same, "{more:?}");
            assert_eq!(sameness(&asked) == number, same, "{more:?}");
        }
        let other = request(&[("accept", "image/*"), own[1], own[2]]);
        assert_ne!(sameness(&other), number);
        let joined = request(&[("accept", "image/webp\tcookie:a=1"), own[2]]);
        assert_ne!(sameness(&joined), number);
    }

    #[test]
    fn the_document_names_what_a_private_response_is_bound_to() {
        let document = include_str!("../../../../docs/matching.md");
        let paragraph =
            document.split("**Private responses.**").nth(1).and_then(|rest| rest.split("\n\n").next());
        let named: Vec<String> =
            paragraph.unwrap().split('`').skip(1).step_by(2).map(str::to_ascii_lowercase).collect();
        for name in &PRIVATE_TO {
            assert!(named.iter().any(|named| named == name.as_str()), "{name}");
        }
    }

    #[test]
    fn the_document_lists_the_fields_that_are_not_compared() {
        let mut listed = NOT_COMPARED.map(str::to_owned);
        listed.sort();
        assert_eq!(table(0), listed);
    }

    #[test]
    fn the_document_lists_the_fields_that_are_evaluated() {
        let mut listed = EVALUATED.map(|name| name.as_str().to_owned());
        listed.sort();
        assert_eq!(table(1), listed);
    }

    #[test]
    fn the_document_lists_the_fields_that_are_compared_always() {
        let mut listed = ALWAYS_COMPARED.clone().map(|name| name.as_str().to_owned());
        listed.sort();
        assert_eq!(table(2), listed);
    }
}

//! A request that crossed, as it teaches: what it was for, in which mode, and what a script has said in it. Of anything
//! that could not be asked for again without knowing more, nothing is learned.

use farhop_bundle::{is_navigation, is_speculative, unfamiliar};
use farhop_freshness::{Scope, shareable, storable};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_models::{LONGEST_URL, Needs};
use farhop_page::{Destination, Mode};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use url::Url;

use crate::treatment::media_type;

/// Longest value of a field that is learned.
const LONGEST_VALUE: usize = 128;

/// See the module.
pub(super) struct Seen {
    pub(super) url: Url,
    pub(super) referer: Option<Url>,
    pub(super) needs: Needs,
    /// The answer may be given to anyone.
    pub(super) anyones: bool,
    /// It may not be kept, not even for who asked.
    pub(super) unkept: bool,
}

/// `None` where nothing is to be learned of it.
pub(super) fn seen(request: &RequestHead, response: &ResponseHead) -> Option<Seen> {
    let fields = &request.fields;
    let asks_plainly = request.method == Method::GET
        && !is_navigation(fields)
        // For another page: it says so in a field that what is foreseen for this one has not.
        && !is_speculative(fields)
        && !request.upgrades()
        && !request.is_of_its_connection()
        && ![header::AUTHORIZATION, header::RANGE].iter().any(|name| fields.contains_key(name))
        && unfamiliar(fields).next().is_none();
    let is_there = response.status.is_success() && response.status != StatusCode::PARTIAL_CONTENT
        || response.status == StatusCode::NOT_MODIFIED;
    if !asks_plainly || !is_there || response.fields.contains_key(header::SET_COOKIE) {
        return None;
    }
    // No model learns a longer one.
    let url = request.resource().filter(|url| url.as_str().len() <= LONGEST_URL)?;
    let destination = destination(fields, response)?;
    let referer = text(fields, "referer").and_then(|referer| Url::parse(referer).ok());
    let origin = fields.contains_key(header::ORIGIN);
    let mode = mode(fields, destination, origin);
    let mut needs = Needs { origin: Some(origin), ..Needs::new(destination, mode) };
    needs.urgency = text(fields, "priority").and_then(urgency);
    if destination == Destination::Fetch {
        for name in ["accept", "x-requested-with"] {
            let Some(value) = text(fields, name) else { continue };
            if value.len() > LONGEST_VALUE {
                return None;
            }
            if value != "*/*" {
                needs.said.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    // What has not changed is what it was.
    let status = if response.status == StatusCode::NOT_MODIFIED { StatusCode::OK } else { response.status };
    let anyones = is_anyones(&url, fields, status, &response.fields);
    let unkept = storable(&Method::GET, fields, status, &response.fields, Scope::Private).is_err();
    Some(Seen { url, referer, needs, anyones, unkept })
}

/// Whether a response is what anyone gets: judged as if it had been asked for with credentials.
pub(crate) fn is_anyones(url: &Url, request: &HeaderMap, status: StatusCode, response: &HeaderMap) -> bool {
    let mut request = request.clone();
    request.entry(header::COOKIE).or_insert(HeaderValue::from_static("some"));
    shareable(url.scheme() == "https", &request, status, response)
}

/// As the request says, else as the answer does. `None` for what brings pages of its own, or is played.
fn destination(request: &HeaderMap, response: &ResponseHead) -> Option<Destination> {
    if let Some(said) = text(request, "sec-fetch-dest") {
        return Some(match said {
            "script" => Destination::Script,
            "style" => Destination::Style,
            "image" => Destination::Image,
            "font" => Destination::Font,
            "manifest" => Destination::Manifest,
            "json" => Destination::Json,
            "track" => Destination::Track,
            "worker" => Destination::Worker,
            "sharedworker" => Destination::SharedWorker,
            "empty" => Destination::Fetch,
            _ => return None,
        });
    }
    let accept = text(request, "accept").unwrap_or_default();
    let kind = media_type(&response.fields);
    Some(match &*kind {
        "text/css" if accept.starts_with("text/css") => Destination::Style,
        "text/javascript" | "application/javascript" | "application/x-javascript" => Destination::Script,
        kind if kind.starts_with("image/") && accept.contains("image/") => Destination::Image,
        kind if kind.starts_with("font/") => Destination::Font,
        kind if kind.starts_with("video/") || kind.starts_with("audio/") => return None,
        _ if accept.starts_with("text/css") => Destination::Style,
        _ if accept.contains("image/") => Destination::Image,
        _ => Destination::Fetch,
    })
}

fn mode(request: &HeaderMap, destination: Destination, origin: bool) -> Mode {
    let is_cors = match text(request, "sec-fetch-mode") {
        Some("cors") => true,
        Some("same-origin") => return Mode::SameOrigin,
        Some(_) => false,
        None => origin || matches!(destination, Destination::Font | Destination::Fetch),
    };
    match is_cors {
        // Another origin's, with cookies: `credentials: "include"` or `crossorigin=use-credentials`.
        true if request.contains_key(header::COOKIE) && is_elsewhere(request) => Mode::CorsWithCredentials,
        true => Mode::Cors,
        false => Mode::NoCors,
    }
}

fn is_elsewhere(request: &HeaderMap) -> bool {
    text(request, "sec-fetch-site").is_some_and(|site| site != "same-origin")
}

/// RFC 9218 §4.1.
fn urgency(priority: &str) -> Option<u8> {
    let said = priority.split(',').find_map(|part| part.trim().strip_prefix("u="))?;
    said.parse().ok().filter(|level| *level <= 7)
}

fn text<'a>(fields: &'a HeaderMap, name: &str) -> Option<&'a str> {
    fields.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn fields(all: &[(&str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        all.iter().map(field).collect()
    }

    fn of(request: &[(&str, &str)], kind: &str) -> Option<Needs> {
        of_path("/x", request, kind)
    }

    fn of_path(path: &str, request: &[(&str, &str)], kind: &str) -> Option<Needs> {
        let request = RequestHead {
            method: Method::GET,
            scheme: "https".into(),
            authority: "site.test".into(),
            path: path.into(),
            fields: fields(request),
        };
        let response = ResponseHead { status: StatusCode::OK, fields: fields(&[("content-type", kind)]) };
        seen(&request, &response).map(|seen| seen.needs)
    }

    #[test]
    fn what_a_request_is_for_is_what_it_says_else_what_comes() {
        let dest = |request: &[(&str, &str)], kind: &str| of(request, kind).map(|needs| needs.destination);
        let json = "application/json";
        assert_eq!(dest(&[("sec-fetch-dest", "empty")], json), Some(Destination::Fetch));
        assert_eq!(dest(&[("sec-fetch-dest", "script")], json), Some(Destination::Script));
        assert_eq!(dest(&[("sec-fetch-dest", "iframe")], "text/html"), None);
        assert_eq!(dest(&[("accept", "*/*")], "text/javascript"), Some(Destination::Script));
        assert_eq!(dest(&[("accept", "image/webp,*/*")], "image/png"), Some(Destination::Image));
        assert_eq!(dest(&[("accept", "*/*")], "image/png"), Some(Destination::Fetch), "a script's own");
        assert_eq!(dest(&[("accept", "*/*")], "video/mp4"), None);
    }

    #[test]
    fn what_workers_run_is_learned_of_their_own_origin_and_what_service_workers_do_is_not() {
        for (said, destination) in
            [("worker", Destination::Worker), ("sharedworker", Destination::SharedWorker)]
        {
            let asked = [("accept", "*/*"), ("sec-fetch-dest", said), ("sec-fetch-mode", "same-origin")];
            let needs = of(&asked, "text/javascript").unwrap();
            assert_eq!((needs.destination, needs.mode), (destination, Mode::SameOrigin));
        }
        let asked = [("sec-fetch-dest", "serviceworker"), ("sec-fetch-mode", "same-origin")];
        assert_eq!(of(&asked, "text/javascript"), None);
    }

    #[test]
    fn nothing_is_learned_of_what_is_prefetched_for_another_page() {
        let asked = [("accept", "*/*"), ("sec-fetch-dest", "empty"), ("sec-purpose", "prefetch")];
        assert_eq!(of(&asked, "text/javascript"), None);
        assert!(of(&asked[..2], "text/javascript").is_some());
    }

    #[test]
    fn nothing_is_learned_of_a_url_from_a_target_in_other_words() {
        let of = |path: &str| of_path(path, &[("accept", "*/*")], "text/javascript");
        assert!(of("/x").is_some() && of("/./x").is_none() && of("/a/%2e%2e/x").is_none());
    }

    #[test]
    fn what_scripts_say_of_accept_is_learned_and_what_may_be_secret_is_not() {
        let accept = ("accept", "application/json");
        let needs =
            of(&[accept, ("sec-fetch-dest", "empty"), ("sec-fetch-mode", "cors")], "application/json");
        let needs = needs.unwrap();
        assert_eq!(needs.said, [("accept".to_owned(), "application/json".to_owned())]);
        assert_eq!((needs.mode, needs.origin), (Mode::Cors, Some(false)));
        for (name, value) in [("authorization", "Bearer 1"), ("x-token", "1"), ("range", "bytes=0-1")] {
            assert_eq!(of(&[accept, (name, value)], "application/json"), None, "{name}");
        }
    }

    #[test]
    fn the_priority_that_the_browser_tells_is_learned() {
        assert_eq!(of(&[("priority", "u=1, i")], "text/css").unwrap().urgency, Some(1));
        assert_eq!(of(&[("priority", "i")], "text/css").unwrap().urgency, None);
        assert_eq!(of(&[("priority", "u=9")], "text/css").unwrap().urgency, None);
    }
}

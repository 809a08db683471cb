//! What an origin answers: methods, preconditions, ranges, codings (RFC 9110). Pure: a site and a request head come in,
//! a status, fields and the choice of bytes go out.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION, RANGE, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use super::site::{Asset, Found, Site};

/// An answer whose body has yet to be sent.
#[derive(Debug)]
pub(super) struct Answer {
    /// The status.
    pub(super) status: StatusCode,
    /// Every field, `Content-Length` included.
    pub(super) fields: HeaderMap,
    /// The bytes.
    pub(super) body: Body,
}

/// Where the bytes of an answer are.
#[derive(Debug)]
pub(super) enum Body {
    /// Here.
    Held(Bytes),
    /// In a file: path, first byte, count.
    File(std::path::PathBuf, u64, u64),
}

/// Answers a GET or HEAD (or refuses the method); the caller leaves the body of a HEAD away.
pub(super) fn answer(site: &Site, method: &Method, target: &Uri, request: &HeaderMap) -> Answer {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut refusal = message(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD, POST and PUT are served");
        refusal.fields.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT"));
        return refusal;
    }
    match site.find(target.path()) {
        Ok(Found::File(asset)) => serve(&asset, method, request),
        Ok(Found::Folder) => {
            let query = target.query().map(|query| format!("?{query}")).unwrap_or_default();
            let mut moved = message(StatusCode::MOVED_PERMANENTLY, "a folder ends in a slash");
            if let Ok(place) = HeaderValue::from_str(&format!("{}/{query}", target.path())) {
                moved.fields.insert(LOCATION, place);
            }
            moved
        }
        Ok(Found::Nothing) => message(StatusCode::NOT_FOUND, "no such file on this site"),
        Err(error) => {
            message(StatusCode::INTERNAL_SERVER_ERROR, &format!("the file cannot be read: {error}"))
        }
    }
}

/// A short text answer.
pub(super) fn message(status: StatusCode, text: &str) -> Answer {
    let body = Bytes::from(format!("{status}: {text}\n"));
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Answer { status, fields, body: Body::Held(body) }
}

fn serve(asset: &Asset, method: &Method, request: &HeaderMap) -> Answer {
    let mut fields = HeaderMap::new();
    // RFC 9110 §8.8.3: a coded twin is another representation, so its strong validator differs.
    let range_asked = request.contains_key(RANGE) && *method == Method::GET;
    let twin = twins(asset).find(|(coding, _)| !range_asked && accepts(request, coding));
    let tag = entity_tag(asset, twin.map(|(coding, _)| coding));
    if twins(asset).next().is_some() {
        fields.insert(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
    }
    insert(&mut fields, ETAG, &tag);
    insert(&mut fields, LAST_MODIFIED, &httpdate::fmt_http_date(asset.modified));
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));

    match precondition(asset, &tag, request) {
        Precondition::Holds => {}
        // RFC 9110 §15.4.5: validators and Vary go along, representation fields do not.
        Precondition::NotModified => {
            return Answer { status: StatusCode::NOT_MODIFIED, fields, body: Body::Held(Bytes::new()) };
        }
        Precondition::Failed => {
            return message(StatusCode::PRECONDITION_FAILED, "a precondition of the request failed");
        }
    }

    fields.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    // Fonts of another origin come by CORS only (CSS Fonts 4 §4.8.2); hosts that serve them allow everyone.
    if asset.media_type.starts_with("font/") {
        fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    if let Some((coding, small)) = twin {
        fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        fields.insert(CONTENT_LENGTH, HeaderValue::from(small.len()));
        return Answer { status: StatusCode::OK, fields, body: Body::Held(small.clone()) };
    }
    if range_asked && range_holds(asset, &tag, request) {
        match byte_range(request, asset.len) {
            Ranges::Whole => {}
            Ranges::One(first, count) => {
                let span = format!("bytes {first}-{}/{}", first + count - 1, asset.len);
                insert(&mut fields, CONTENT_RANGE, &span);
                fields.insert(CONTENT_LENGTH, HeaderValue::from(count));
                return Answer {
                    status: StatusCode::PARTIAL_CONTENT,
                    fields,
                    body: bytes_of(asset, first, count),
                };
            }
            Ranges::Unsatisfiable => {
                let mut refusal =
                    message(StatusCode::RANGE_NOT_SATISFIABLE, "the range lies outside the file");
                insert(&mut refusal.fields, CONTENT_RANGE, &format!("bytes */{}", asset.len));
                return refusal;
            }
        }
    }
    fields.insert(CONTENT_LENGTH, HeaderValue::from(asset.len));
    Answer { status: StatusCode::OK, fields, body: bytes_of(asset, 0, asset.len) }
}

fn bytes_of(asset: &Asset, first: u64, count: u64) -> Body {
    match &asset.held {
        Some(bytes) => Body::Held(bytes.slice(first as usize..(first + count) as usize)),
        None => Body::File(asset.path.clone(), first, count),
    }
}

fn insert(fields: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        fields.insert(name, value);
    }
}

/// A strong entity tag: the content's hash, and the coding where there is one.
fn entity_tag(asset: &Asset, coding: Option<&str>) -> String {
    let coding = coding.map(|coding| format!("-{coding}"));
    format!("\"{}{}\"", &asset.sha256[..32], coding.unwrap_or_default())
}

/// The coded twins of an asset, the best first.
fn twins(asset: &Asset) -> impl Iterator<Item = (&'static str, &Bytes)> {
    let each = [("br", &asset.brotli), ("gzip", &asset.gzip)];
    each.into_iter().filter_map(|(coding, twin)| Some((coding, twin.as_ref()?)))
}

/// RFC 9110 §12.5.3: the coding is listed, alone or by `*`, and not with weight zero.
fn accepts(request: &HeaderMap, wanted_coding: &str) -> bool {
    let mut any = None;
    for item in list(request, &ACCEPT_ENCODING) {
        let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
        let weight = parameters.trim().strip_prefix("q=").and_then(|q| q.trim().parse::<f32>().ok());
        let wanted = weight.unwrap_or(1.0) > 0.0;
        match coding.trim().to_ascii_lowercase().as_str() {
            coding if coding.strip_prefix("x-").unwrap_or(coding) == wanted_coding => return wanted,
            "*" => any = Some(wanted),
            _ => {}
        }
    }
    any.unwrap_or(false)
}

/// The comma-separated items of a list field, over all its lines.
fn list<'a>(request: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = request.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|item| !item.is_empty())
}

enum Precondition {
    Holds,
    NotModified,
    Failed,
}

/// RFC 9110 §13.2.2, for GET and HEAD, in its order.
fn precondition(asset: &Asset, tag: &str, request: &HeaderMap) -> Precondition {
    if request.contains_key(IF_MATCH) {
        // §13.1.1: strong comparison, so a weak tag never matches.
        if !list(request, &IF_MATCH).any(|item| item == "*" || item == tag) {
            return Precondition::Failed;
        }
    } else if let Some(since) = date(request, IF_UNMODIFIED_SINCE)
        && later(asset.modified, since)
    {
        return Precondition::Failed;
    }
    if request.contains_key(IF_NONE_MATCH) {
        // §13.1.2: weak comparison; If-Modified-Since is then ignored.
        if list(request, &IF_NONE_MATCH).any(|item| item == "*" || item.trim_start_matches("W/") == tag) {
            return Precondition::NotModified;
        }
    } else if let Some(since) = date(request, IF_MODIFIED_SINCE)
        && !later(asset.modified, since)
    {
        return Precondition::NotModified;
    }
    Precondition::Holds
}

fn date(request: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(request.get(name)?.to_str().ok()?).ok()
}

/// HTTP dates have whole seconds, file times have not.
fn later(modified: SystemTime, since: SystemTime) -> bool {
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs());
    seconds(modified) > seconds(since)
}

/// RFC 9110 §13.1.5: the tag, compared strongly, or the date, compared exactly.
fn range_holds(asset: &Asset, tag: &str, request: &HeaderMap) -> bool {
    let Some(value) = request.get(IF_RANGE) else { return true };
    match value.to_str() {
        Ok(text) if text.starts_with('"') => text == tag,
        Ok(text) => text == httpdate::fmt_http_date(asset.modified),
        Err(_) => false,
    }
}

enum Ranges {
    Whole,
    One(u64, u64),
    Unsatisfiable,
}

/// RFC 9110 §14.2: one range is served; several, another unit or broken syntax get the whole representation.
fn byte_range(request: &HeaderMap, len: u64) -> Ranges {
    let Some(text) = request.get(RANGE).and_then(|value| value.to_str().ok()) else { return Ranges::Whole };
    let Some((first, last)) = text.trim().strip_prefix("bytes=").and_then(|set| set.trim().split_once('-'))
    else {
        return Ranges::Whole;
    };
    match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first > last => Ranges::Whole,
        (Ok(first), Ok(last)) if first < len => Ranges::One(first, last.min(len - 1) - first + 1),
        (Ok(first), Err(_)) if last.trim().is_empty() && first < len => Ranges::One(first, len - first),
        (Err(_), Ok(count)) if first.trim().is_empty() => match count.min(len) {
            0 => Ranges::Unsatisfiable,
            count => Ranges::One(len - count, count),
        },
        (Ok(_), Ok(_)) => Ranges::Unsatisfiable,
        (Ok(_), Err(_)) if last.trim().is_empty() => Ranges::Unsatisfiable,
        _ => Ranges::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789";

    fn site() -> (tempfile::TempDir, Site) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.txt"), TEXT).unwrap();
        std::fs::write(folder.path().join("page.html"), "<p>again and again</p>".repeat(50)).unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let site = Site::open(folder.path()).unwrap();
        (folder, site)
    }

    fn ask(site: &Site, target: &'static str, fields: &[(&'static str, &str)]) -> Answer {
        let mut request = HeaderMap::new();
        for (name, value) in fields {
            request.append(*name, value.parse().unwrap());
        }
        answer(site, &Method::GET, &Uri::from_static(target), &request)
    }

    fn held(answer: &Answer) -> &[u8] {
        match &answer.body {
            Body::Held(bytes) => bytes,
            Body::File(..) => panic!("small files are held"),
        }
    }

    #[test]
    fn brotli_goes_to_who_takes_it_where_the_site_has_it() {
        let (folder, plain) = site();
        let dressed = Site::with_brotli(folder.path()).unwrap();
        let coding = |site: &Site, takes: &str| {
            let answer = ask(site, "/page.html", &[("accept-encoding", takes)]);
            assert_eq!(answer.fields[VARY], "accept-encoding");
            let tag = answer.fields[ETAG].to_str().unwrap().to_owned();
            let coding = answer.fields.get(CONTENT_ENCODING).map(|it| it.to_str().unwrap().to_owned());
            assert!(tag.ends_with(&coding.as_ref().map_or("\"".into(), |coding| format!("-{coding}\""))));
            coding
        };
        let (gzip, br) = (Some("gzip".to_owned()), Some("br".to_owned()));
        for (takes, without, with) in [
            ("gzip, deflate, br", &gzip, &br),
            ("gzip", &gzip, &gzip),
            ("br", &None, &br),
            ("br;q=0, *", &gzip, &gzip),
            ("identity", &None, &None),
        ] {
            assert_eq!((&coding(&plain, takes), &coding(&dressed, takes)), (without, with), "{takes}");
        }
    }

    #[test]
    fn ranges_follow_rfc_9110_section_14() {
        let (_folder, site) = site();
        let table: &[(&str, u16, &str, Option<&str>)] = &[
            ("bytes=0-0", 206, "0", Some("bytes 0-0/10")),
            ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
            ("bytes=8-", 206, "89", Some("bytes 8-9/10")),
            ("bytes=8-99", 206, "89", Some("bytes 8-9/10")),
            ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
            ("bytes=-99", 206, TEXT, Some("bytes 0-9/10")),
            ("bytes=5-2", 200, TEXT, None),
            ("bytes=a-b", 200, TEXT, None),
            ("bytes=0-1,3-4", 200, TEXT, None),
            ("lines=0-1", 200, TEXT, None),
        ];
        for (range, status, body, span) in table {
            let answer = ask(&site, "/t.txt", &[("range", range)]);
            assert_eq!(answer.status.as_u16(), *status, "{range}");
            assert_eq!(held(&answer), body.as_bytes(), "{range}");
            assert_eq!(answer.fields.get(CONTENT_RANGE).map(|v| v.to_str().unwrap()), *span, "{range}");
        }
        for range in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            let answer = ask(&site, "/t.txt", &[("range", range)]);
            assert_eq!(answer.status, StatusCode::RANGE_NOT_SATISFIABLE, "{range}");
            assert_eq!(answer.fields[CONTENT_RANGE], "bytes */10");
        }
    }

    #[test]
    fn validators_answer_conditional_requests() {
        let (_folder, site) = site();
        let first = ask(&site, "/t.txt", &[]);
        let tag = first.fields[ETAG].to_str().unwrap().to_owned();
        let date = first.fields[LAST_MODIFIED].to_str().unwrap().to_owned();
        let old = "Mon, 01 Jan 2001 00:00:00 GMT";
        let status = |fields: &[(&'static str, &str)]| ask(&site, "/t.txt", fields).status.as_u16();
        assert_eq!(status(&[("if-none-match", &tag)]), 304);
        assert_eq!(status(&[("if-none-match", &format!("\"x\", W/{tag}"))]), 304);
        assert_eq!(status(&[("if-none-match", "\"x\""), ("if-modified-since", &date)]), 200);
        assert_eq!(status(&[("if-modified-since", &date)]), 304);
        assert_eq!(status(&[("if-modified-since", old)]), 200);
        assert_eq!(status(&[("if-match", &format!("W/{tag}"))]), 412);
        assert_eq!(status(&[("if-match", &tag)]), 200);
        assert_eq!(status(&[("if-unmodified-since", old)]), 412);
        assert_eq!(status(&[("range", "bytes=0-1"), ("if-range", &tag)]), 206);
        assert_eq!(status(&[("range", "bytes=0-1"), ("if-range", "\"x\"")]), 200);
    }

    #[test]
    fn text_is_gzipped_when_the_request_allows_even_through_a_proxy() {
        let (_folder, site) = site();
        let coded = ask(&site, "/page.html", &[("accept-encoding", "br, gzip"), ("via", "1.1 somewhere")]);
        assert_eq!(coded.fields[CONTENT_ENCODING], "gzip");
        assert_eq!(coded.fields[VARY], "accept-encoding");
        let plain = ask(&site, "/page.html", &[]);
        assert_ne!(coded.fields[ETAG], plain.fields[ETAG]);
        for refusal in ["gzip;q=0, *", "br", "identity", "*;q=0"] {
            let answer = ask(&site, "/page.html", &[("accept-encoding", refusal)]);
            assert!(!answer.fields.contains_key(CONTENT_ENCODING), "{refusal}");
        }
        assert!(ask(&site, "/page.html", &[("accept-encoding", "*")]).fields.contains_key(CONTENT_ENCODING));
    }

    #[test]
    fn fonts_may_be_used_by_any_origin_and_nothing_else_says_so() {
        let (folder, site) = site();
        std::fs::write(folder.path().join("a.woff2"), "font").unwrap();
        assert_eq!(ask(&site, "/a.woff2", &[]).fields[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert!(!ask(&site, "/t.txt", &[]).fields.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    }

    #[test]
    fn folders_redirect_and_what_is_absent_is_404() {
        let (_folder, site) = site();
        let moved = ask(&site, "/sub?x=1", &[]);
        assert_eq!((moved.status.as_u16(), moved.fields[LOCATION].to_str().unwrap()), (301, "/sub/?x=1"));
        assert_eq!(ask(&site, "/favicon.ico", &[]).status, StatusCode::NOT_FOUND);
        assert_eq!(ask(&site, "/t.txt?version=3", &[]).status, StatusCode::OK);
    }
}

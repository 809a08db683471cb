//! An image coded anew is another representation than the origin's: whether a response may become one, what stands in its
//! head, and how its validator finds back to the origin's. Pure: fields in, fields out.
//!
//! Its tag is `W/"farhop.POLICY.FORM.KIND.REST"`: FORM is `webp` where the client takes that, else `jpeg`; KIND is `s` or
//! `w` with the origin's strong or weak tag in REST, or `n` with a hash where the origin gives none. It is weak since the
//! version of the coder, and how much time there was, are no part of it (RFC 9110 §8.8.1).

use std::borrow::Cow;

use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::Destination;
use farhop_squeeze::{Policy, Recoded};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::manifest::{self, Most};
use crate::treatment::{has_directive, list, text};

/// What is known of the reason for a request, beside its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Purpose {
    /// What a page wants it for, where ground asks of itself.
    pub(crate) destination: Option<Destination>,
    /// The page vouches for the bytes with a hash.
    pub(crate) integrity: bool,
    /// Asked with CORS (`crossorigin`), where ground asks of itself.
    pub(crate) cors: bool,
}

/// The beginning of all tags that are made here.
pub(crate) const OURS: &str = "W/\"farhop.";
/// The beginning of those of manifests.
const PLAYED: &str = "W/\"farhop.play.";
/// Tells what was done to an image.
const FARHOP_IMAGE: HeaderName = HeaderName::from_static("farhop-image");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Whether a request is for an image to be shown, and for nothing that says that it needs the origin's very bytes: no
/// download, no script that fetches it, no part of it, no document of its own, and none with CORS, which is for a canvas
/// that reads the pixels. A canvas reads those of its own origin without a word in the request (record 0014).
pub(crate) fn is_for_image(request: &RequestHead, purpose: Purpose) -> bool {
    let fields = &request.fields;
    let shown = match (purpose.destination, fields.get(SEC_FETCH_DEST)) {
        (Some(destination), _) => matches!(destination, Destination::Image | Destination::Icon),
        (None, Some(destination)) => destination == "image",
        // Towards http: origins browsers do not say. Only for an image do they name image types first.
        (None, None) => text(fields, &header::ACCEPT).starts_with("image/"),
    };
    let cors = purpose.cors
        || fields.contains_key(header::ORIGIN)
        || fields.get(SEC_FETCH_MODE).is_some_and(|mode| mode == "cors");
    shown
        && !cors
        && !purpose.integrity
        && request.method == Method::GET
        && !fields.contains_key(header::RANGE)
        && !has_directive(fields, &header::CACHE_CONTROL, "no-transform")
}

/// Whether a client takes WebP: it must name it, since `image/*` is older than WebP.
pub(crate) fn takes_webp(request: &HeaderMap) -> bool {
    list(request, &header::ACCEPT).any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let refused = |part: &str| part.strip_prefix("q=").and_then(|q| q.parse().ok()) == Some(0.0);
        parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("image/webp")) && !parts.any(refused)
    })
}

/// The beginning of the tags of images that are made under `policy` for this client.
fn prefix(policy: Policy, request: &HeaderMap) -> String {
    let form = if takes_webp(request) { "webp" } else { "jpeg" };
    format!("{OURS}{policy}.{form}.")
}

/// The request as the origin is to have it: tags of images and manifests made here become the origin's own, or are left out with
/// the date where such an image, or a manifest limited so, would not be the answer. Any other request stays as it is.
pub(crate) fn towards_origin(
    request: &RequestHead,
    purpose: Purpose,
    policy: Policy,
    most: Option<Most>,
) -> Cow<'_, RequestHead> {
    let held = tags(&request.fields);
    if !held.iter().any(|tag| tag.starts_with(OURS)) {
        return Cow::Borrowed(request);
    }
    let image = is_for_image(request, purpose).then(|| prefix(policy, &request.fields));
    let prefixes: Vec<String> = image.into_iter().chain(most.map(manifest::tag_prefix)).collect();
    let (mut asked, mut by_date) = (Vec::new(), false);
    for tag in &held {
        let would_be_made = prefixes.iter().any(|prefix| tag.starts_with(prefix));
        match tag.strip_prefix(OURS) {
            None => asked.push((*tag).to_owned()),
            Some(rest) if would_be_made => match original(rest) {
                Some(original) => asked.push(original),
                None => by_date = true,
            },
            // Made under another policy, or for another client, or wanted for something else now.
            Some(_) => {}
        }
    }
    let mut request = request.clone();
    request.fields.remove(header::IF_NONE_MATCH);
    if !asked.is_empty() {
        if let Ok(value) = HeaderValue::from_str(&asked.join(", ")) {
            request.fields.insert(header::IF_NONE_MATCH, value);
        }
    } else if !by_date {
        // It dates something else than what this request is for.
        request.fields.remove(header::IF_MODIFIED_SINCE);
    }
    Cow::Owned(request)
}

/// Makes a 304 one for the image that the client holds, if that is what it asked with. `request` is as the client sent
/// it; [`towards_origin`] has seen to it that no other image made here can be meant.
pub(crate) fn confirm(request: &HeaderMap, head: &mut ResponseHead) {
    let held = tags(request);
    let fresh = head.fields.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let bare = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    // The original is held too: that is what the origin speaks of.
    let holds_original = fresh.is_some_and(|fresh| held.iter().any(|tag| bare(tag) == bare(fresh)));
    if head.status != StatusCode::NOT_MODIFIED || holds_original {
        return;
    }
    let made_of = |tag: &&&str| match (tag.strip_prefix(OURS).map(original), fresh) {
        (None, _) => false,
        (Some(Some(original)), Some(fresh)) => bare(&original) == bare(fresh),
        (Some(Some(_)), None) | (Some(None), _) => true,
    };
    let confirmed = held.iter().find(made_of).and_then(|tag| HeaderValue::from_str(tag).ok());
    if let Some(confirmed) = confirmed {
        let is_image = !confirmed.as_bytes().starts_with(PLAYED.as_bytes());
        head.fields.insert(header::ETAG, confirmed);
        if is_image {
            disown(request, &mut head.fields);
        }
    }
}

/// Changes `head` into that of the image made of the origin's, whose hash is given in hex.
pub(crate) fn describe(
    request: &HeaderMap,
    policy: Policy,
    head: &mut ResponseHead,
    recoded: &Recoded,
    hash: &str,
) {
    let fields = &mut head.fields;
    let tag = tag_of(&prefix(policy, request), fields, hash);
    fields.remove(header::ETAG);
    if let Some(tag) = tag {
        fields.insert(header::ETAG, tag);
    }
    disown(request, fields);
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(recoded.done.to.media()));
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(recoded.bytes.len()));
    if let Ok(done) = HeaderValue::from_str(&recoded.done.to_string()) {
        fields.insert(FARHOP_IMAGE, done);
    }
}

/// The tag that begins so for what is made of the response with these fields, whose hash is given in hex.
pub(crate) fn tag_of(prefix: &str, fields: &HeaderMap, hash: &str) -> Option<HeaderValue> {
    let own = text(fields, &header::ETAG);
    let rest = match (opaque(own), own.starts_with("W/")) {
        (Some(opaque), true) => format!("w.{opaque}"),
        (Some(opaque), false) => format!("s.{opaque}"),
        (None, _) => format!("n.{hash}"),
    };
    HeaderValue::from_str(&format!("{prefix}{rest}\"")).ok()
}

/// Takes out what is the origin's and adds what the choice depends on.
fn disown(request: &HeaderMap, fields: &mut HeaderMap) {
    // The origin's ranges are of other bytes.
    for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::ACCEPT_RANGES] {
        fields.remove(name);
    }
    let depends = [
        (header::ACCEPT, "accept"),
        (SEC_FETCH_DEST, "sec-fetch-dest"),
        // What a canvas will read is asked for with CORS.
        (SEC_FETCH_MODE, "sec-fetch-mode"),
    ];
    for (name, value) in depends {
        let told = list(fields, &header::VARY).any(|it| it == "*" || it.eq_ignore_ascii_case(value));
        if !told && (name == header::ACCEPT || request.contains_key(&name)) {
            fields.append(header::VARY, HeaderValue::from_static(value));
        }
    }
}

/// The tags of `If-None-Match`. An opaque tag may hold commas (RFC 9110 §8.8.3).
fn tags(request: &HeaderMap) -> Vec<&str> {
    let mut tags = Vec::new();
    for value in request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()) {
        let mut rest = value.trim_start_matches([' ', '\t', ',']);
        while !rest.is_empty() {
            let quote = rest.find('"').filter(|at| ["", "W/"].contains(&&rest[..*at]));
            let end = quote.and_then(|open| Some(open + 2 + rest[open + 1..].find('"')?));
            // What is no tag (`*`) ends at its comma.
            let end = end.unwrap_or_else(|| rest.find(',').unwrap_or(rest.len()));
            tags.push(rest[..end].trim_end());
            rest = rest[end..].trim_start_matches([' ', '\t', ',']);
        }
    }
    tags
}

/// What stands between the quotes of a tag.
fn opaque(tag: &str) -> Option<&str> {
    let opaque = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')?;
    (!opaque.contains('"')).then_some(opaque)
}

/// The origin's tag in what follows [`OURS`]; none where the origin gave none.
fn original(rest: &str) -> Option<String> {
    let mut parts = rest.splitn(4, '.').skip(2);
    match (parts.next()?, parts.next()?) {
        ("s", opaque) => Some(format!("\"{opaque}")),
        ("w", opaque) => Some(format!("W/\"{opaque}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::{fields, request};
    use farhop_squeeze::{Done, Format};

    const CHROMIUM: &str = "accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";

    fn asked(more: &str) -> RequestHead {
        request(&format!("{CHROMIUM} | {more}"))
    }

    #[test]
    fn only_what_is_shown_as_an_image_and_not_read_by_a_canvas_may_be_changed() {
        let image = Some(Destination::Image);
        let rows = [
            (CHROMIUM, None, true),
            ("accept: image/webp,image/avif,video/*;q=0.8", None, true),
            ("accept: */*", None, false),
            ("accept: text/html,application/xhtml+xml,image/webp,*/*;q=0.8", None, false),
            ("accept: image/webp | sec-fetch-dest: empty", None, false),
            ("accept: text/html,image/webp | sec-fetch-dest: document", None, false),
            ("accept: */* | sec-fetch-dest: image", None, true),
            ("accept: image/webp | origin: http://site.test", None, false),
            ("accept: image/webp | sec-fetch-dest: image | sec-fetch-mode: cors", None, false),
            ("accept: image/webp | sec-fetch-dest: image | sec-fetch-mode: no-cors", None, true),
            ("accept: image/webp | range: bytes=0-", None, false),
            ("accept: image/webp | cache-control: no-transform", None, false),
            ("accept: */*", image, true),
            ("accept: image/webp", Some(Destination::Fetch), false),
        ];
        for (lines, destination, expected) in rows {
            let purpose = Purpose { destination, ..Purpose::default() };
            assert_eq!(is_for_image(&request(lines), purpose), expected, "{lines} {destination:?}");
        }
        let shown = Purpose { destination: image, ..Purpose::default() };
        assert!(!is_for_image(&request(CHROMIUM), Purpose { integrity: true, ..shown }));
        assert!(!is_for_image(&request(CHROMIUM), Purpose { cors: true, ..shown }), "for a canvas");
        let head = RequestHead { method: Method::HEAD, ..request(CHROMIUM) };
        assert!(!is_for_image(&head, Purpose::default()));
    }

    #[test]
    fn webp_is_for_those_who_name_it() {
        for (accept, expected) in [
            (CHROMIUM, true),
            ("accept: IMAGE/WEBP;q=0.5", true),
            ("accept: image/webp;q=0, image/png", false),
            ("accept: image/*,*/*;q=0.8", false),
            ("x-none: 1", false),
        ] {
            assert_eq!(takes_webp(&fields(accept)), expected, "{accept}");
        }
    }

    /// The tag of an image that the client holds, as the origin is asked for it and as a 304 confirms it.
    fn described(asked: &RequestHead, policy: Policy, answered: &str) -> ResponseHead {
        let mut head = ResponseHead { status: StatusCode::OK, fields: fields(answered) };
        let done = Done { to: Format::Webp, quality: Some(74), from: Format::Jpeg, was: 9000 };
        describe(
            &asked.fields,
            policy,
            &mut head,
            &Recoded { bytes: vec![0; 3000], done },
            "0123456789abcdef",
        );
        head
    }

    #[test]
    fn a_changed_image_has_a_head_of_its_own() {
        let head = described(
            &asked("sec-fetch-dest: image | sec-fetch-mode: no-cors"),
            Policy::Gentle,
            "content-type: image/jpeg | content-length: 9000 | accept-ranges: bytes | etag: \"a,b\" | vary: Origin | last-modified: then",
        );
        let expected = fields(
            "content-type: image/webp | content-length: 3000 | etag: W/\"farhop.gentle.webp.s.a,b\" | vary: Origin | vary: accept | vary: sec-fetch-dest | vary: sec-fetch-mode | last-modified: then | farhop-image: webp; q=74; from=jpeg; was=9000",
        );
        assert_eq!(head.fields, expected);
        let bare = described(&asked(""), Policy::Strong, "vary: Accept, *");
        assert_eq!(bare.fields[header::ETAG], "W/\"farhop.strong.webp.n.0123456789abcdef\"");
        assert_eq!(bare.fields.get_all(header::VARY).iter().count(), 1);
    }

    #[test]
    fn tags_made_here_go_to_the_origin_as_its_own() {
        let ours = "W/\"farhop.gentle.webp.s.a,b\"";
        let date = "if-modified-since: then";
        // Tags asked with, whether for an image, the tags and the date that the origin sees.
        let rows = [
            (ours, true, Some("\"a,b\""), true),
            ("W/\"farhop.gentle.webp.w.x.y\", \"own\"", true, Some("W/\"x.y\", \"own\""), true),
            ("W/\"farhop.gentle.webp.n.0123\"", true, None, true),
            ("W/\"farhop.strong.webp.s.a\"", true, None, false),
            ("W/\"farhop.gentle.jpeg.s.a\"", true, None, false),
            (ours, false, None, false),
            ("W/\"farhop.gentle.webp.s.a\", \"own\"", false, Some("\"own\""), true),
            ("W/\"farhop.nonsense\"", true, None, false),
            ("\"own\", W/\"two\"", true, Some("\"own\", W/\"two\""), true),
            ("*", true, Some("*"), true),
        ];
        for (tags, image, expected, dated) in rows {
            let accept = if image { CHROMIUM } else { "accept: */*" };
            let asked = request(&format!("{accept} | {date} | if-none-match: {tags}"));
            let sent = towards_origin(&asked, Purpose::default(), Policy::Gentle, None);
            let value = sent.fields.get(header::IF_NONE_MATCH).map(|value| value.to_str().unwrap());
            assert_eq!(value, expected, "{tags}");
            assert_eq!(sent.fields.contains_key(header::IF_MODIFIED_SINCE), dated, "{tags}");
        }
    }

    #[test]
    fn a_304_confirms_the_image_that_is_held() {
        let ours = "W/\"farhop.gentle.webp.s.a\"";
        // Tags asked with, the origin's, what the client is told.
        let rows = [
            (ours, "etag: \"a\"", Some(ours)),
            (ours, "etag: W/\"a\"", Some(ours)),
            (ours, "x-none: 1", Some(ours)),
            ("W/\"farhop.gentle.webp.s.a\", \"a\"", "etag: \"a\"", Some("\"a\"")),
            (ours, "etag: \"b\"", Some("\"b\"")),
            ("W/\"farhop.gentle.webp.n.01\"", "x-none: 1", Some("W/\"farhop.gentle.webp.n.01\"")),
            ("\"a\"", "etag: \"a\"", Some("\"a\"")),
        ];
        for (tags, answered, expected) in rows {
            let asked = asked(&format!("if-none-match: {tags}"));
            let mut head = ResponseHead { status: StatusCode::NOT_MODIFIED, fields: fields(answered) };
            confirm(&asked.fields, &mut head);
            let told = head.fields.get(header::ETAG).map(|tag| tag.to_str().unwrap());
            assert_eq!(told, expected, "{tags} {answered}");
            assert_eq!(
                head.fields.contains_key(header::VARY),
                told == Some(ours) || tags.contains(".n."),
                "{tags}"
            );
        }
    }
}

//! How a response body may be coded to cross the hop, and what that changes in its head. Pure: fields in,
//! verdict out; the coding itself is `farhop-squeeze`'s.

use farhop_bundle::is_attachment;
use farhop_htotp::{RequestHead, ResponseHead, frame};
use farhop_squeeze::{Coding, ImageOffer, Recipe, UnknownCoding, image_plan, parse_codings};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::imaging::Means;
use crate::manifest::Manifest;
use crate::variant::{Purpose, is_for_image, takes_webp};

/// Fields that vouch for the bytes as the origin coded them (RFC 9530, RFC 9421, RFC 3230, RFC 2616 §14.15).
pub(crate) const VOUCHING: [&str; 6] =
    ["content-digest", "repr-digest", "digest", "signature", "signature-input", "content-md5"];

/// What happens to a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It crosses as the origin sent it.
    Pass,
    /// Text without a content coding: it crosses as zstd and is delivered byte for byte as the origin sent it, so the
    /// head stays as it is.
    Squeeze,
    /// Text with content codings (last applied last): it is decoded here, crosses as zstd or as it was coded, and is delivered
    /// decoded, so the head changes.
    Recode(Vec<Coding>),
    /// An image that may be coded anew once it is here; then its head is that of another representation.
    Image(Recipe),
    /// A manifest of streaming media, which is read and may be limited.
    Manifest(Manifest),
}

impl Treatment {
    /// The coding in which the body may cross as its origin coded it: the only one that it has, and one that remotes undo.
    pub(crate) fn of_origin(&self) -> Option<frame::Coding> {
        let codings = match self {
            Treatment::Recode(codings) => codings,
            Treatment::Manifest(manifest) => &manifest.codings,
            Treatment::Pass | Treatment::Squeeze | Treatment::Image(_) => return None,
        };
        match codings.as_slice() {
            [Coding::Brotli] => Some(frame::Coding::Brotli),
            [Coding::Gzip] => Some(frame::Coding::Gzip),
            _ => None,
        }
    }
}

/// The treatment of the answer to `request`, which was made for `purpose`.
pub(crate) fn treatment(
    request: &RequestHead,
    response: &ResponseHead,
    purpose: Purpose,
    means: Means,
) -> Treatment {
    let fields = &response.fields;
    let media = media_type(fields);
    if let Some(recipe) = image_recipe(request, response, &media, purpose, means) {
        return Treatment::Image(recipe);
    }
    // An event stream would keep an encoder for as long as a page is open, for lines that hardly get smaller.
    let is_text = farhop_squeeze::is_text(&media) && media != "text/event-stream";
    if means.level == 0 || !is_text {
        return Treatment::Pass;
    }
    if !has_body(&request.method, response.status) {
        // RFC 9110 §9.3.2: HEAD is answered with the head that GET would be.
        let asked = RequestHead { method: Method::GET, ..request.clone() };
        let as_get = request.method == Method::HEAD && may_be_decoded(&asked, response, &media);
        return match codings(fields) {
            Ok(codings) if as_get && !codings.is_empty() => Treatment::Recode(codings),
            _ => Treatment::Pass,
        };
    }
    match codings(fields) {
        Ok(codings) if codings.is_empty() => Treatment::Squeeze,
        Ok(codings) if may_be_decoded(request, response, &media) => Treatment::Recode(codings),
        _ => Treatment::Pass,
    }
}

fn image_recipe(
    request: &RequestHead,
    response: &ResponseHead,
    media: &str,
    purpose: Purpose,
    means: Means,
) -> Option<Recipe> {
    let fields = &response.fields;
    let may_be_changed = response.status == StatusCode::OK
        && is_for_image(request, purpose)
        && !is_attachment(fields)
        && !fields.contains_key(header::CONTENT_ENCODING)
        && !fields.contains_key(header::CONTENT_RANGE)
        // RFC 9842 §2.1: what the origin codes against later are these bytes.
        && !fields.contains_key("use-as-dictionary")
        // RFC 9110 §7.7
        && !has_directive(fields, &header::CACHE_CONTROL, "no-transform")
        && !VOUCHING.iter().any(|name| fields.contains_key(*name));
    let webp = takes_webp(&request.fields);
    let offer = ImageOffer { media, length: content_length(fields), webp };
    may_be_changed.then(|| image_plan(&offer, means.policy, means.load)).flatten()
}

pub(crate) fn may_be_decoded(request: &RequestHead, response: &ResponseHead, media: &str) -> bool {
    let fields = &response.fields;
    let strong = fields.get(header::ETAG).is_some_and(|tag| !tag.as_bytes().starts_with(b"W/"));
    // Pages and what they are made of are shown, and manifests read, not compared byte by byte. Other programs may keep a copy of the coded
    // bytes under the tag.
    let is_manifest = farhop_streaming::Form::of(media, "").is_some();
    let kept_by_its_tag = strong && !is_page_part(media) && !is_manifest;
    // A client that does not know the coding keeps the coded bytes as a file, as `wget x.txt.gz` does.
    let client_decodes = list(fields, &header::CONTENT_ENCODING)
        .all(|coding| accepts(&request.fields, coding))
        && accepts(&request.fields, "identity");
    response.status == StatusCode::OK
        && !request.fields.contains_key(header::RANGE)
        && !kept_by_its_tag
        && client_decodes
        && !is_attachment(fields)
        // RFC 9110 §7.7: a proxy must not transform what says no-transform.
        && !has_directive(fields, &header::CACHE_CONTROL, "no-transform")
        && !has_directive(&request.fields, &header::CACHE_CONTROL, "no-transform")
        && !VOUCHING.iter().any(|name| fields.contains_key(*name))
}

/// Makes the head of a 304 one for the decoded body, if that is what the client holds: it asked with the weak tag that
/// [`describe_decoded`] gave it, and must not learn the strong one of other bytes.
pub(crate) fn confirm_decoded(request: &HeaderMap, head: &mut ResponseHead) {
    let Some(tag) = head.fields.get(header::ETAG).map(|tag| tag.as_bytes().to_vec()) else { return };
    let weak = [b"W/", tag.as_slice()].concat();
    let asked = |wanted: &[u8]| {
        let mut tags = request
            .get_all(header::IF_NONE_MATCH)
            .iter()
            .flat_map(|list| list.as_bytes().split(|b| *b == b','));
        tags.any(|listed| listed.trim_ascii() == wanted)
    };
    if head.status == StatusCode::NOT_MODIFIED
        && !tag.starts_with(b"W/")
        && asked(&weak)
        && !asked(&tag)
        && let Ok(weak) = HeaderValue::from_bytes(&weak)
    {
        head.fields.insert(header::ETAG, weak);
    }
}

/// Changes `head` into that of the decoded body, whose length is given where it is known.
pub(crate) fn describe_decoded(head: &mut ResponseHead, length: Option<u64>) {
    let fields = &mut head.fields;
    fields.remove(header::CONTENT_ENCODING);
    fields.remove(header::CONTENT_LENGTH);
    // The origin's ranges are of the coded bytes.
    fields.remove(header::ACCEPT_RANGES);
    if let Some(length) = length {
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    // RFC 9110 §8.8.1: a strong validator names one sequence of bytes, and this is another.
    let weak = fields
        .get(header::ETAG)
        .filter(|tag| !tag.as_bytes().starts_with(b"W/"))
        .and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        fields.insert(header::ETAG, weak);
    }
}

/// Whether a response to `method` with this status has a body (RFC 9112 §6.3).
pub(crate) fn has_body(method: &Method, status: StatusCode) -> bool {
    let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
    !(status.is_informational() || bodiless || method == Method::HEAD)
}

/// The content codings, in the order in which they were applied; `identity` is none.
///
/// # Errors
/// One of them is not known here.
pub(crate) fn codings(fields: &HeaderMap) -> Result<Vec<Coding>, UnknownCoding> {
    parse_codings(&list(fields, &header::CONTENT_ENCODING).collect::<Vec<_>>().join(","))
}

/// The length of the body, where it is told.
pub(crate) fn content_length(fields: &HeaderMap) -> Option<u64> {
    text(fields, &header::CONTENT_LENGTH).parse().ok()
}

/// Type and subtype in lower case, without parameters; empty where there is none.
pub(crate) fn media_type(fields: &HeaderMap) -> String {
    let whole = text(fields, &header::CONTENT_TYPE);
    whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The `charset` parameter.
pub(crate) fn charset(fields: &HeaderMap) -> Option<String> {
    text(fields, &header::CONTENT_TYPE).split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// Pages, and what they are made of.
fn is_page_part(media: &str) -> bool {
    matches!(
        media,
        "text/html"
            | "application/xhtml+xml"
            | "image/svg+xml"
            | "text/css"
            | "text/javascript"
            | "application/javascript"
            | "application/x-javascript"
            | "application/ecmascript"
    )
}

/// Whether `Accept-Encoding` allows `coding` by its name; `identity` is allowed unless it is refused (RFC 9110
/// §12.5.3).
fn accepts(request: &HeaderMap, coding: &str) -> bool {
    let coding = coding.to_ascii_lowercase();
    let coding = coding.strip_prefix("x-").unwrap_or(&coding);
    let mut any = None;
    for entry in list(request, &header::ACCEPT_ENCODING) {
        let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        let name = name.trim().to_ascii_lowercase();
        let allowed = !parameters
            .split(';')
            .filter_map(|parameter| parameter.trim().strip_prefix("q="))
            .any(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0));
        match name.as_str() {
            "*" => any = Some(allowed),
            name if name.strip_prefix("x-").unwrap_or(name) == coding => return allowed,
            _ => {}
        }
    }
    any.unwrap_or(coding == "identity")
}

pub(crate) fn has_directive(fields: &HeaderMap, name: &HeaderName, directive: &str) -> bool {
    list(fields, name).any(|entry| entry.eq_ignore_ascii_case(directive))
}

pub(crate) fn list<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = fields.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|entry| !entry.is_empty())
}

pub(crate) fn text<'a>(fields: &'a HeaderMap, name: &HeaderName) -> &'a str {
    fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::{fields, request};
    use farhop_squeeze::{Load, Policy};

    const MEANS: Means = Means { policy: Policy::Gentle, level: 9, load: Load::Light, most: None };

    fn verdict(asked: &str, answered: &str) -> Treatment {
        let response = ResponseHead { status: StatusCode::OK, fields: fields(answered) };
        treatment(&request(asked), &response, Purpose::default(), MEANS)
    }

    fn gzip() -> Treatment {
        Treatment::Recode(vec![Coding::Gzip])
    }

    #[test]
    fn a_304_confirms_the_tag_that_the_client_holds() {
        let mut head = ResponseHead { status: StatusCode::NOT_MODIFIED, fields: fields("etag: \"1\"") };
        confirm_decoded(&fields("if-none-match: \"1\""), &mut head);
        assert_eq!(head.fields["etag"], "\"1\"");
        confirm_decoded(&fields("if-none-match: \"0\", W/\"1\""), &mut head);
        assert_eq!(head.fields["etag"], "W/\"1\"");
    }

    /// Each row: request fields, response fields, what happens.
    #[test]
    fn bodies_are_treated_as_the_table_says() {
        use Treatment::{Pass, Squeeze};
        let takes = "accept-encoding: gzip, br";
        let rows = [
            ("", "content-type: text/html", Squeeze),
            ("", "content-type: application/json | etag: \"1\"", Squeeze),
            ("", "content-type: text/html | content-encoding: identity", Squeeze),
            ("range: bytes=5-", "content-type: text/html", Squeeze),
            ("", "content-type: text/html | cache-control: no-transform", Squeeze),
            ("", "content-type: text/html | content-digest: sha-256=:AA==:", Squeeze),
            (takes, "content-type: image/png", Pass),
            (takes, "content-type: font/woff2", Pass),
            (takes, "x-none: 1", Pass),
            (takes, "content-type: text/event-stream", Pass),
            (takes, "content-type: text/html; charset=utf-8 | content-encoding: GZIP", gzip()),
            (takes, "content-type: text/css | content-encoding: gzip | etag: \"1\"", gzip()),
            (takes, "content-type: image/svg+xml | content-encoding: gzip | etag: \"1\"", gzip()),
            (takes, "content-type: application/json | content-encoding: gzip | etag: W/\"1\"", gzip()),
            (takes, "content-type: application/json | content-encoding: gzip", gzip()),
            (takes, "content-type: application/json | content-encoding: gzip | etag: \"1\"", Pass),
            (takes, "content-type: text/csv | content-encoding: gzip | etag: \"1\"", Pass),
            (
                takes,
                "content-type: text/html | content-encoding: gzip | cache-control: public, No-Transform",
                Pass,
            ),
            (
                takes,
                "content-type: text/html | content-encoding: gzip | content-digest: sha-256=:AA==:",
                Pass,
            ),
            (takes, "content-type: text/html | content-encoding: gzip | repr-digest: sha-256=:AA==:", Pass),
            (takes, "content-type: text/html | content-encoding: gzip | digest: sha-256=AA==", Pass),
            (takes, "content-type: text/html | content-encoding: gzip | signature: s=:AA==:", Pass),
            (takes, "content-type: text/html | content-encoding: gzip | content-md5: AA==", Pass),
            (
                takes,
                "content-type: text/html | content-encoding: gzip | content-disposition: attachment",
                Pass,
            ),
            (takes, "content-type: text/html | content-encoding: unheard-of", Pass),
            // RFC 9842: only the client has the dictionary.
            ("accept-encoding: dcb, dcz", "content-type: text/javascript | content-encoding: dcb", Pass),
            ("accept-encoding: dcb, dcz", "content-type: text/javascript | content-encoding: dcz", Pass),
            // A dictionary is what the body decodes to.
            (
                takes,
                "content-type: text/css | content-encoding: gzip | use-as-dictionary: match=\"/*\"",
                gzip(),
            ),
            ("accept-encoding: br", "content-type: text/html | content-encoding: gzip", Pass),
            ("", "content-type: text/html | content-encoding: gzip", Pass),
            ("accept-encoding: gzip;q=0", "content-type: text/html | content-encoding: gzip", Pass),
            ("accept-encoding: *", "content-type: text/html | content-encoding: gzip", gzip()),
            ("accept-encoding: gzip, identity;q=0", "content-type: text/html | content-encoding: gzip", Pass),
            (
                "accept-encoding: gzip | range: bytes=5-",
                "content-type: text/html | content-encoding: gzip",
                Pass,
            ),
            (
                "accept-encoding: gzip | cache-control: no-transform",
                "content-type: text/html | content-encoding: gzip",
                Pass,
            ),
        ];
        for (asked, answered, expected) in rows {
            assert_eq!(verdict(asked, answered), expected, "{asked} → {answered}");
        }
    }

    #[test]
    fn answers_other_than_200_are_not_decoded() {
        let coded = fields("content-type: text/html | content-encoding: gzip");
        for (status, expected) in [(206, Treatment::Pass), (404, Treatment::Pass), (200, gzip())] {
            let response =
                ResponseHead { status: StatusCode::from_u16(status).unwrap(), fields: coded.clone() };
            assert_eq!(
                treatment(&request("accept-encoding: gzip"), &response, Purpose::default(), MEANS),
                expected,
                "{status}"
            );
        }
    }

    #[test]
    fn nothing_is_squeezed_where_there_is_no_body_or_the_level_is_0() {
        let response = |status| ResponseHead { status, fields: fields("content-type: text/html") };
        let head = RequestHead { method: Method::HEAD, ..request("") };
        let treated = |request: &RequestHead, response: &ResponseHead, level| {
            treatment(request, response, Purpose::default(), Means { level, ..MEANS })
        };
        assert_eq!(treated(&head, &response(StatusCode::OK), 9), Treatment::Pass);
        assert_eq!(treated(&request(""), &response(StatusCode::NOT_MODIFIED), 9), Treatment::Pass);
        assert_eq!(treated(&request(""), &response(StatusCode::OK), 0), Treatment::Pass);
    }

    #[test]
    fn a_decoded_body_gets_the_head_of_another_representation() {
        let mut head = ResponseHead {
            status: StatusCode::OK,
            fields: fields(
                "content-encoding: gzip | content-length: 9 | etag: \"v\" | vary: accept-encoding | accept-ranges: bytes",
            ),
        };
        describe_decoded(&mut head, None);
        assert_eq!(head.fields, fields("etag: W/\"v\" | vary: accept-encoding"));
        describe_decoded(&mut head, Some(4));
        assert_eq!(head.fields, fields("etag: W/\"v\" | vary: accept-encoding | content-length: 4"));
    }

    #[test]
    fn charset_is_read_whatever_its_spelling() {
        assert_eq!(
            charset(&fields("content-type: text/html; Charset=\"ISO-8859-1\"")),
            Some("ISO-8859-1".into())
        );
        assert_eq!(charset(&fields("content-type: text/html")), None);
    }
}

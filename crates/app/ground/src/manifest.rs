//! Manifests of streaming media (HLS, DASH) as they pass: whether one may be limited to the renditions that the link carries, and
//! the head of what it becomes, which is another representation than the origin's. Pure: fields in, fields out; what is left
//! out is `farhop_streaming`'s choice.
//!
//! The tag of a limited manifest is `W/"farhop.play.LIMIT.KIND.REST"`, with the limit in kbit/s, as `variant` has it for images.

use farhop_htotp::{RequestHead, ResponseHead};
use farhop_squeeze::Coding;
use farhop_streaming::{Form, Limited};
use farhop_units::BitRate;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::treatment::{VOUCHING, codings, describe_decoded, has_directive, may_be_decoded, media_type};
use crate::variant;
use farhop_bundle::is_attachment;

/// Tells what was done to a manifest.
const FARHOP_MANIFEST: HeaderName = HeaderName::from_static("farhop-manifest");

/// The bit rate of the best rendition that may stay, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Most {
    pub(crate) rate: BitRate,
    pub(crate) by: By,
}

/// Who says how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Link,
    Settings,
}

impl By {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            By::Link => "the link carries no more",
            By::Settings => "the settings allow no more",
        }
    }
}

/// What may be done to a manifest. It is read either way, for what it says of play rates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) form: Form,
    /// In which it comes, the last applied last.
    pub(crate) codings: Vec<Coding>,
    /// None where it stays as it is.
    pub(crate) most: Option<Most>,
}

/// What is to be done with a response that is a manifest, and why it is left alone although there is a limit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) manifest: Option<Manifest>,
    pub(crate) left: Option<(Form, &'static str)>,
}

/// Judges the answer to `request`.
pub(crate) fn judged(request: &RequestHead, response: &ResponseHead, most: Option<Most>) -> Judged {
    let fields = &response.fields;
    let media = media_type(fields);
    let is_asked = [Method::GET, Method::HEAD].contains(&request.method);
    let form = Form::of(&media, &request.path).filter(|_| is_asked && response.status == StatusCode::OK);
    let Some(form) = form else { return Judged::default() };
    let left = |why| Judged { manifest: None, left: most.map(|_| (form, why)) };
    let Ok(codings) = codings(fields) else { return left("its content coding is not known here") };
    if request.fields.contains_key(header::RANGE) {
        return left("a part of it is asked for");
    }
    let get = RequestHead { method: Method::GET, ..request.clone() };
    let why = if has_directive(fields, &header::CACHE_CONTROL, "no-transform")
        || has_directive(&request.fields, &header::CACHE_CONTROL, "no-transform")
    {
        // RFC 9110 §7.7
        Some("it says no-transform")
    } else if VOUCHING.iter().any(|name| fields.contains_key(*name)) {
        Some("it is signed")
    } else if is_attachment(fields) {
        Some("it is a download")
    } else if !codings.is_empty() && !may_be_decoded(&get, response, &media) {
        Some("it may not be decoded")
    } else {
        None
    };
    let left = why.filter(|_| most.is_some()).map(|why| (form, why));
    let stays_coded = why.is_some() && !codings.is_empty();
    let most = most.filter(|_| why.is_none());
    // What HEAD would be answered with is only known once all of it is read.
    let is_read = !stays_coded && (request.method == Method::GET || most.is_some());
    Judged { manifest: is_read.then_some(Manifest { form, codings, most }), left }
}

/// The beginning of the tags of manifests that are limited so.
pub(crate) fn tag_prefix(most: Most) -> String {
    format!("{}play.{}.", variant::OURS, most.rate.0 / 1_000)
}

/// Changes `head` into that of the limited manifest, made of the one whose hash is given in hex.
pub(crate) fn describe(
    head: &mut ResponseHead,
    manifest: &Manifest,
    most: Most,
    limited: &Limited,
    hash: &str,
) {
    let tag = variant::tag_of(&tag_prefix(most), &head.fields, hash);
    describe_decoded(head, Some(limited.text.len() as u64));
    head.fields.remove(header::ETAG);
    if let Some(tag) = tag {
        head.fields.insert(header::ETAG, tag);
    }
    let done = format!(
        "{}; kept={}; left-out={}; most={}",
        manifest.form.as_str().to_ascii_lowercase(),
        limited.kept,
        limited.left_out,
        most.rate.0
    );
    if let Ok(done) = HeaderValue::from_str(&done) {
        head.fields.insert(FARHOP_MANIFEST, done);
    }
}

/// The head that a HEAD is answered with (RFC 9110 §9.3.2): without what depends on the bytes, which nobody has read.
pub(crate) fn describe_unread(fields: &mut HeaderMap) {
    for name in [header::CONTENT_ENCODING, header::CONTENT_LENGTH, header::ACCEPT_RANGES, header::ETAG] {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::{fields, request};
    use farhop_squeeze::Policy;

    const MOST: Most = Most { rate: BitRate::mbit(6), by: By::Link };
    const HLS: &str = "content-type: Application/vnd.apple.mpegurl; charset=utf-8";

    fn answer(lines: &str) -> ResponseHead {
        ResponseHead { status: StatusCode::OK, fields: fields(lines) }
    }

    fn judge(asked: &str, answered: &str) -> Judged {
        judged(&request(asked), &answer(answered), Some(MOST))
    }

    #[test]
    fn only_what_its_origin_lets_change_is_limited() {
        let limited = |codings: Vec<Coding>| Judged {
            manifest: Some(Manifest { form: Form::Hls, codings, most: Some(MOST) }),
            left: None,
        };
        let read = |why| Judged {
            manifest: Some(Manifest { form: Form::Hls, codings: vec![], most: None }),
            left: Some((Form::Hls, why)),
        };
        let left = |why| Judged { manifest: None, left: Some((Form::Hls, why)) };
        let gzip = format!("{HLS} | content-encoding: gzip");
        for (asked, answered, expected) in [
            ("", HLS.to_owned(), limited(vec![])),
            ("", format!("{HLS} | etag: \"a\" | cache-control: max-age=5"), limited(vec![])),
            ("accept-encoding: gzip", format!("{gzip} | etag: \"a\""), limited(vec![Coding::Gzip])),
            ("", gzip.clone(), left("it may not be decoded")),
            (
                "accept-encoding: gzip",
                format!("{gzip} | cache-control: no-transform"),
                left("it says no-transform"),
            ),
            ("", format!("{HLS} | cache-control: public, No-Transform"), read("it says no-transform")),
            ("cache-control: no-transform", HLS.to_owned(), read("it says no-transform")),
            ("", format!("{HLS} | content-digest: sha-256=:AA==:"), read("it is signed")),
            ("", format!("{HLS} | signature: s=:AA==:"), read("it is signed")),
            ("", format!("{HLS} | content-disposition: attachment"), read("it is a download")),
            ("", format!("{HLS} | content-encoding: dcz"), left("its content coding is not known here")),
            ("range: bytes=0-", HLS.to_owned(), left("a part of it is asked for")),
            ("", "content-type: text/html".to_owned(), Judged::default()),
        ] {
            assert_eq!(judge(asked, &answered), expected, "{asked} {answered}");
        }
        let mut missing = answer(HLS);
        missing.status = StatusCode::NOT_FOUND;
        assert_eq!(judged(&request(""), &missing, Some(MOST)), Judged::default());
        let unlimited = judged(&request(""), &answer(HLS), None);
        assert_eq!(unlimited.manifest, Some(Manifest { form: Form::Hls, codings: vec![], most: None }));
    }

    #[test]
    fn a_limited_manifest_has_a_head_of_its_own_and_its_tag_finds_back() {
        let mut head = answer(&format!(
            "{HLS} | content-encoding: gzip | content-length: 900 | accept-ranges: bytes | etag: \"a.b\" | cache-control: max-age=5"
        ));
        let manifest = Manifest { form: Form::Hls, codings: vec![Coding::Gzip], most: Some(MOST) };
        let limited = Limited { text: vec![0; 70], kept: 2, left_out: 3, best: BitRate::mbit(5) };
        describe(&mut head, &manifest, MOST, &limited, "0123");
        let ours = "W/\"farhop.play.6000.s.a.b\"";
        assert_eq!(
            head.fields,
            fields(&format!(
                "{HLS} | content-length: 70 | etag: {ours} | cache-control: max-age=5 | farhop-manifest: hls; kept=2; left-out=3; most=6000000"
            ))
        );
        // Asked for again, the origin sees its own tag, and its 304 confirms ours.
        let again = request(&format!("if-none-match: {ours}"));
        let sent = variant::towards_origin(&again, variant::Purpose::default(), Policy::Gentle, Some(MOST));
        assert_eq!(sent.fields[header::IF_NONE_MATCH], "\"a.b\"");
        let mut head = ResponseHead { status: StatusCode::NOT_MODIFIED, fields: fields("etag: \"a.b\"") };
        variant::confirm(&again.fields, &mut head);
        assert_eq!(head.fields, fields(&format!("etag: {ours}")));
        // Under another limit it is made anew.
        let other = Most { rate: BitRate::mbit(2), by: By::Settings };
        for most in [Some(other), None] {
            let sent = variant::towards_origin(&again, variant::Purpose::default(), Policy::Gentle, most);
            assert!(!sent.fields.contains_key(header::IF_NONE_MATCH));
        }
    }

    #[test]
    fn head_says_nothing_of_bytes_that_nobody_has_read() {
        let head = RequestHead { method: Method::HEAD, ..request("") };
        let answered = answer(&format!("{HLS} | content-length: 9 | etag: \"a\" | vary: origin"));
        assert!(judged(&head, &answered, Some(MOST)).manifest.is_some());
        assert_eq!(judged(&head, &answered, None).manifest, None);
        let mut left = answered.fields;
        describe_unread(&mut left);
        assert_eq!(left, fields(&format!("{HLS} | vary: origin")));
    }
}

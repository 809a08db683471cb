//! From an attribute's text to the URL that a browser would fetch, or to nothing.

use crate::decode::Charset;
use encoding_rs::{EncoderResult, Encoding, UTF_8};
use std::borrow::Cow;
use url::Url;

/// Ports that no browser connects to (Fetch, "bad port").
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
    2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Resolves `text` against `base`. `None` for what is not fetched over HTTP or what a browser
/// would refuse.
pub(crate) fn resolve(text: &str, base: &Url, max_url: usize) -> Option<Url> {
    resolve_in(Charset::UTF_8, text, base, max_url)
}

/// As [`resolve`], for a text in `charset`, in which queries are written (URL, "percent-encode after encoding").
pub(crate) fn resolve_in(charset: Charset, text: &str, base: &Url, max_url: usize) -> Option<Url> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\x0c', '\r']);
    if trimmed.is_empty() || trimmed.len() > max_url {
        return None;
    }
    // Fetch, "should request be blocked as dangling markup": a newline and a `<` in one URL is an injected tag.
    if trimmed.contains('<') && trimmed.contains(['\n', '\r', '\t']) {
        return None;
    }
    // URL, "special authority ignore slashes state": any number of slashes stand before a host, which the parser here takes of one with
    // a scheme alone.
    let host = trimmed.trim_start_matches(['/', '\\']);
    let slashes = trimmed.len() - host.len();
    let shorter = if slashes > 2 { Some(format!("//{host}")) } else { None };
    let trimmed = shorter.as_deref().unwrap_or(trimmed);
    let encoding = charset.of(trimmed)?;
    let url = if encoding == UTF_8 || trimmed.is_ascii() {
        base.join(trimmed).ok()?
    } else {
        let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|text| Cow::Owned(encode(encoding, text));
        Url::options().base_url(Some(base)).encoding_override(Some(encode)).parse(trimmed).ok()?
    };
    fetchable(url, max_url)
}

/// A query in `encoding`, percent signs apart; what that cannot say is a number (URL, "percent-encode after encoding").
fn encode(encoding: &'static Encoding, query: &str) -> Vec<u8> {
    let (mut encoder, mut bytes, mut rest) = (encoding.new_encoder(), Vec::new(), query);
    loop {
        let longest = encoder.max_buffer_length_from_utf8_without_replacement(rest.len());
        bytes.reserve(longest.unwrap_or(8 * rest.len()).max(16));
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return bytes,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                bytes.extend(format!("%26%23{}%3B", u32::from(character)).bytes());
            }
        }
    }
}

/// `url` without its fragment; `None` for what is not fetched over HTTP or what a browser would refuse, and where it is
/// longer than `max_url` bytes.
pub fn fetchable(mut url: Url, max_url: usize) -> Option<Url> {
    // What of `http:` a page of `https:` may load, its policies and the browser decide.
    let scheme_fits = matches!(url.scheme(), "http" | "https");
    // Browsers refuse subresources with credentials in the URL.
    let bare = url.username().is_empty() && url.password().is_none();
    let port_open = url.port().is_none_or(|port| !BAD_PORTS.contains(&port));
    (scheme_fits && bare && port_open && url.host().is_some() && url.as_str().len() <= max_url).then(|| {
        url.set_fragment(None);
        escape_in_path(&mut url, '^', "%5E");
        url
    })
}

/// Writes `character` as `escaped` in the path. The path percent-encode set of the URL standard has `^` since 2024, the
/// parser here has not; browsers have others of their own.
pub fn escape_in_path(url: &mut Url, character: char, escaped: &str) {
    if url.path().contains(character) {
        let path = url.path().replace(character, escaped);
        url.set_path(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Option<String> {
        let document = Url::parse("http://site.test/a/b.html?q#f").unwrap();
        resolve(text, &document, 8192).map(String::from)
    }

    #[test]
    fn relative_forms_resolve_as_browsers_do() {
        let cases = [
            ("c.js", "http://site.test/a/c.js"),
            ("/c.js", "http://site.test/c.js"),
            ("//cdn.test/c.js", "http://cdn.test/c.js"),
            ("///cdn.test/c.js", "http://cdn.test/c.js"),
            ("/\\//cdn.test/c.js", "http://cdn.test/c.js"),
            ("../../c.js", "http://site.test/c.js"),
            ("?x=1", "http://site.test/a/b.html?x=1"),
            (" \n c.js\t", "http://site.test/a/c.js"),
            ("a\nb\t.js", "http://site.test/a/ab.js"),
            ("\\x\\y.js", "http://site.test/x/y.js"),
            ("HTTP://Site.Test:80/C", "http://site.test/C"),
            ("http:c.js", "http://site.test/a/c.js"),
            ("c.js#frag", "http://site.test/a/c.js"),
            ("ü.png?ü", "http://site.test/a/%C3%BC.png?%C3%BC"),
            ("a b.png", "http://site.test/a/a%20b.png"),
            ("http://täst.test/", "http://xn--tst-qla.test/"),
            ("./%2e%2e/x", "http://site.test/x"),
            ("a^|b.png?^|", "http://site.test/a/a%5E|b.png?^|"),
        ];
        for (text, expected) in cases {
            assert_eq!(resolved(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn queries_are_written_in_the_encoding_of_their_text() {
        let page = Url::parse("http://site.test/").unwrap();
        let in_encoding =
            |label: &str, text| resolve_in(Charset::named(label), text, &page, 8192).map(String::from);
        let cases = [
            ("latin1", "/ä?ä", "/%C3%A4?%E4"),
            ("koi8-r", "?я&a=%20", "/?%D1&a=%20"),
            ("shift_jis", "?日", "/?%93%FA"),
            ("latin1", "?a€;b", "/?a%80;b"),
            ("latin1", "?я&日", "/?%26%231103%3B&%26%2326085%3B"),
            ("utf-16le", "?ä", "/?%C3%A4"),
            ("unknown", "/a?b", "/a?b"),
        ];
        for (label, text, expected) in cases {
            assert_eq!(in_encoding(label, text), Some(format!("http://site.test{expected}")), "{text}");
        }
        assert_eq!([in_encoding("unknown", "/ä"), in_encoding("unknown", "/a?ä")], [None, None]);
    }

    #[test]
    fn what_is_not_fetched_over_http_gives_nothing() {
        for text in [
            "",
            "  ",
            "data:image/gif;base64,R0",
            "javascript:x()",
            "blob:http://site.test/1",
            "about:blank",
            "mailto:a@b",
            "ftp://site.test/x",
            "http://",
            "http://[::1",
            "http://user:pw@site.test/x",
            "http://site.test:25/x",
            "a<\nb",
        ] {
            assert_eq!(resolved(text), None, "{text:?}");
        }
    }

    #[test]
    fn plain_http_resources_of_a_secure_page_are_told() {
        let page = Url::parse("https://site.test/").unwrap();
        let resolved = |text| resolve(text, &page, 8192).map(String::from);
        assert_eq!(resolved("http://site.test/x.png").as_deref(), Some("http://site.test/x.png"));
        assert_eq!(resolved("//site.test/x.png").as_deref(), Some("https://site.test/x.png"));
    }
}

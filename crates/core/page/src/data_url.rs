//! `data:` URLs (Fetch, "data: URL processor"): a text that stands in the page's own, and may name other things.

use crate::decode::{Charset, TextDecoder};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

const SCHEME: &str = "data:";

/// What such a URL holds.
pub(crate) struct DataUrl {
    /// Its media type, in lower case and without parameters.
    pub(crate) kind: String,
    charset: Option<String>,
    bytes: Vec<u8>,
}

impl DataUrl {
    /// `None` for any other URL and for base64 that is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start();
        if !text.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME)) {
            return None;
        }
        let text: String =
            text[SCHEME.len()..].trim_end().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        let (head, body) = text.split('#').next()?.split_once(',')?;
        let mut words = head.split(';').map(str::trim);
        let kind = words.next().unwrap_or_default().to_ascii_lowercase();
        let mut words: Vec<&str> = words.collect();
        let is_base64 = words.pop_if(|last| last.eq_ignore_ascii_case("base64")).is_some();
        let charset = words.iter().find_map(|word| {
            let (name, value) = word.split_once('=')?;
            name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"').to_owned())
        });
        let mut bytes: Vec<u8> = percent_encoding::percent_decode_str(body).collect();
        if is_base64 {
            bytes.retain(|byte| !byte.is_ascii_whitespace() && *byte != b'=');
            bytes = STANDARD_NO_PAD.decode(bytes).ok()?;
        }
        Some(DataUrl { kind, charset, bytes })
    }

    /// Its text, that of a style sheet named by something in the encoding `around`, and in what encoding it is.
    pub(crate) fn style(&self, around: Charset) -> (String, Charset) {
        let mut decoder = TextDecoder::new(self.charset.as_deref(), around);
        let mut text = String::new();
        decoder.decode(&self.bytes, true, &mut text);
        (text, decoder.charset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Option<(String, String)> {
        let data = DataUrl::parse(url)?;
        let (text, _) = data.style(Charset::UTF_8);
        Some((data.kind, text))
    }

    #[test]
    fn what_such_a_url_holds_is_read() {
        for (url, kind, text) in [
            ("data:text/css,a%7Bb:c%7D", "text/css", "a{b:c}"),
            (" DATA:Text/CSS;charset=utf-8;base64,YXt i\nOmN9#x ", "text/css", "a{b:c}"),
            ("data:text/css;base64,YXti%4FmN9Cg==", "text/css", "a{b:c}\n"),
            ("data:text/css;charset=\"latin1\",%E4", "text/css", "\u{e4}"),
            ("data:,x;base64,y", "", "x;base64,y"),
        ] {
            assert_eq!(read(url), Some((kind.to_owned(), text.to_owned())), "{url}");
        }
        for url in ["data:text/css", "http://site.test/a,b", "data:;base64,%%"] {
            assert_eq!(read(url), None, "{url}");
        }
    }
}

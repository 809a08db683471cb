//! Bytes of documents, stylesheets and scripts as text: byte order mark, then `charset` of the response, then what
//! the text itself says, then a default (Encoding standard; HTML, §13.2.3.2; CSS Syntax, §3.2).

use encoding_rs::{Decoder, Encoding, UTF_8, WINDOWS_1252, X_USER_DEFINED};

/// Bytes after which a document's own word on its encoding comes too late (browsers: 1024 and some more).
const LATEST: usize = 8 * 1024;

/// Reads text in pieces of any size.
pub(crate) struct TextDecoder {
    decoder: Decoder,
    /// Nothing in the text changes the encoding any more.
    settled: bool,
    seen: usize,
    /// Beginning of a stylesheet, while it may be an `@charset`.
    head: String,
}

impl std::fmt::Debug for TextDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextDecoder({})", self.decoder.encoding().name())
    }
}

impl TextDecoder {
    /// For a document or stylesheet whose response names `charset`; without, it may say itself, else it is taken for
    /// `default`.
    pub(crate) fn new(charset: Option<&str>, default: &'static Encoding) -> Self {
        let named = charset.and_then(|label| Encoding::for_label(label.trim().as_bytes()));
        TextDecoder {
            decoder: named.unwrap_or(default).new_decoder(),
            settled: named.is_some(),
            seen: 0,
            head: String::new(),
        }
    }

    /// For module scripts, which are UTF-8 whatever anyone says.
    pub(crate) fn utf_8() -> Self {
        TextDecoder { decoder: UTF_8.new_decoder(), settled: true, seen: 0, head: String::new() }
    }

    pub(crate) fn encoding(&self) -> &'static Encoding {
        self.decoder.encoding()
    }

    /// How many of `bytes` can be decoded before the text so far has been asked for its encoding.
    pub(crate) fn run(&self, bytes: &[u8]) -> usize {
        if self.settled {
            return bytes.len();
        }
        // ASCII means the same in all encodings that a text can name; anything else is read by what is known then.
        let ascii = Encoding::ascii_valid_up_to(bytes);
        if ascii > 0 {
            return ascii;
        }
        bytes.iter().position(u8::is_ascii).unwrap_or(bytes.len())
    }

    /// Decodes the next bytes, `last` when none follow.
    pub(crate) fn decode(&mut self, bytes: &[u8], last: bool, text: &mut String) {
        if self.seen == 0 && matches!(bytes.first(), Some(0xEF | 0xFE | 0xFF)) {
            self.settled = true; // a byte order mark, which the decoder sees to
        }
        self.seen += bytes.len();
        self.settled |= self.seen > LATEST;
        // Three bytes for one is the most that any encoding grows by.
        text.reserve(self.decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(3 * bytes.len() + 16));
        let (_, read, _) = self.decoder.decode_to_string(bytes, text, last);
        debug_assert_eq!(read, bytes.len());
    }

    /// The text decoded last is of a stylesheet, which may begin with `@charset "…";` (CSS Syntax, §3.2).
    pub(crate) fn sniff_css(&mut self, text: &str) {
        const START: &str = "@charset \"";
        if self.settled || self.head.len() > START.len() + 100 {
            return;
        }
        self.head.push_str(&text[..text.floor_char_boundary(128)]);
        if let Some((label, _)) = self.head.strip_prefix(START).and_then(|rest| rest.split_once("\";")) {
            let label = label.to_owned();
            self.named(&label);
        }
    }

    /// The text says its encoding.
    pub(crate) fn named(&mut self, label: &str) {
        if self.settled {
            return;
        }
        let Some(encoding) = Encoding::for_label(label.trim().as_bytes()) else { return };
        self.settled = true;
        let encoding = match encoding {
            // HTML, "change the encoding": a text that could be read is no UTF-16.
            encoding if !encoding.is_ascii_compatible() => UTF_8,
            encoding if encoding == X_USER_DEFINED => WINDOWS_1252,
            encoding => encoding,
        };
        if encoding != self.decoder.encoding() {
            self.decoder = encoding.new_decoder_without_bom_handling();
        }
    }
}

/// What `content` of `<meta http-equiv=content-type>` says (HTML, "extracting a character encoding from a meta element").
pub(crate) fn charset_of(content: &str) -> Option<&str> {
    let mut rest = content;
    loop {
        let at = rest.as_bytes().windows(7).position(|word| word.eq_ignore_ascii_case(b"charset"))?;
        rest = rest.get(at + 7..)?;
        let Some(value) = rest.trim_ascii_start().strip_prefix('=') else { continue };
        let value = value.trim_ascii_start();
        return match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).map(|(label, _)| label),
            _ => value.split([' ', '\t', '\n', '\r', '\x0c', ';']).next().filter(|label| !label.is_empty()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_read_from_a_content_type() {
        let cases = [
            ("text/html; charset=latin1", Some("latin1")),
            ("text/html; CHARSET = 'koi8-r' ", Some("koi8-r")),
            ("charset charset=x;y", Some("x")),
            ("text/html", None),
            ("charset=", None),
            ("charset='x", None),
        ];
        for (content, expected) in cases {
            assert_eq!(charset_of(content), expected, "{content}");
        }
    }
}

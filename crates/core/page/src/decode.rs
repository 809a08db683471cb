//! Bytes of documents, stylesheets and scripts as text: byte order mark, then `charset` of the response, then what
//! the text itself says, then a default (Encoding standard; HTML, §13.2.3.2; CSS Syntax, §3.2).

use encoding_rs::{Decoder, Encoding, UTF_8, WINDOWS_1252, X_USER_DEFINED};

/// Bytes in which an XML declaration ends, if it does.
const DECLARATION: usize = 256;
/// Bytes after which a document's own word on its encoding comes too late (browsers: 1024 and some more).
const LATEST: usize = 8 * 1024;

/// The encoding of a text, as far as anybody has said it. What nobody has, browsers guess, each in its way and never as
/// UTF-8: what such a text names beyond ASCII is theirs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Charset(Option<&'static Encoding>);

impl Charset {
    pub(crate) const UTF_8: Charset = Charset(Some(UTF_8));
    pub(crate) const UNSAID: Charset = Charset(None);

    /// By one of its names; any other says nothing.
    pub(crate) fn named(label: &str) -> Self {
        Charset(Encoding::for_label(label.trim().as_bytes()))
    }

    /// This one, or what `default` gives where nobody has said it.
    pub(crate) fn or(self, default: Charset) -> Self {
        Charset(self.0.or(default.0))
    }

    /// The encoding in which `text`, once decoded, names anything; `None` where that cannot be told.
    pub(crate) fn of(self, text: &str) -> Option<&'static Encoding> {
        self.0.or_else(|| text.is_ascii().then_some(UTF_8))
    }
}

/// Reads text in pieces of any size.
pub(crate) struct TextDecoder {
    decoder: Decoder,
    /// Somebody has said the encoding.
    said: bool,
    /// Nothing in the text changes the encoding any more.
    settled: bool,
    seen: usize,
    /// Beginning of a document or stylesheet, while it may be an XML declaration or an `@charset`.
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
    pub(crate) fn new(charset: Option<&str>, default: Charset) -> Self {
        let named = charset.map_or(Charset::UNSAID, Charset::named);
        let Charset(taken) = named.or(default);
        TextDecoder {
            decoder: taken.unwrap_or(UTF_8).new_decoder(),
            said: taken.is_some(),
            settled: named != Charset::UNSAID,
            seen: 0,
            head: String::new(),
        }
    }

    /// For a script, whose text itself says nothing (HTML, "fetch a classic script"; modules are UTF-8).
    pub(crate) fn script(charset: Option<&str>, default: Charset) -> Self {
        TextDecoder { settled: true, ..TextDecoder::new(charset, default) }
    }

    pub(crate) fn charset(&self) -> Charset {
        Charset(self.said.then(|| self.decoder.encoding()))
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
            (self.said, self.settled) = (true, true); // a byte order mark, which the decoder sees to
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

    /// The text decoded last is of a document, which may begin with an XML declaration (HTML, "get an XML encoding"; XML,
    /// §4.3.3). In HTML what a `<meta>` says counts before it.
    pub(crate) fn sniff_xml(&mut self, text: &str) {
        const START: &str = "<?xml";
        if self.settled || self.head.len() > DECLARATION {
            return;
        }
        self.head.push_str(&text[..text.floor_char_boundary(DECLARATION)]);
        let declaration = self.head.strip_prefix(START).and_then(|rest| rest.split_once("?>"));
        if let Some(label) = declaration.and_then(|(declaration, _)| label_in(declaration, "encoding"))
            && let Charset(Some(encoding)) = Charset::named(label)
        {
            self.take(encoding);
        }
    }

    /// The text says its encoding.
    pub(crate) fn named(&mut self, label: &str) {
        if self.settled {
            return;
        }
        let Charset(Some(encoding)) = Charset::named(label) else { return };
        self.settled = true;
        self.take(encoding);
    }

    fn take(&mut self, encoding: &'static Encoding) {
        self.said = true;
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
    label_in(content, "charset")
}

/// What follows `name` and an equals sign, with quotes or without.
fn label_in<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text;
    loop {
        let mut words = rest.as_bytes().windows(name.len());
        let at = words.position(|word| word.eq_ignore_ascii_case(name.as_bytes()))?;
        rest = rest.get(at + name.len()..)?;
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

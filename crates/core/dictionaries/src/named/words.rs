//! `Use-As-Dictionary` as it is read, `Available-Dictionary` and `Dictionary-ID` as they are written (RFC 9842 §2): structured
//! fields (RFC 9651).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::pattern::Pattern;

/// RFC 9842 §2.1.3: a client has to take identifiers of at least so many characters.
const LONGEST_ID: usize = 1_024;
/// Longest field that is read.
const LONGEST: usize = 8 * 1_024;

/// For which requests an origin says that a response is a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// As it stands there; the longer of two goes first.
    pub text: String,
    /// The same, understood.
    pub pattern: Pattern,
    /// Request destinations; none for all.
    pub destinations: Vec<String>,
    /// What the origin calls it; empty where it does not.
    pub id: String,
}

impl Offer {
    /// Of the response to a request for `url`. `None`: it cannot be used as one, or not by what is known here.
    pub fn read(field: &str, url: &Url) -> Option<Offer> {
        let (mut text, mut destinations, mut id) = (None, Vec::new(), String::new());
        for (name, value) in Reader::of(field)?.dictionary()? {
            match (name.as_str(), value) {
                ("match", Value::String(value)) => text = Some(value),
                ("match-dest", Value::List(values)) => destinations = values,
                ("id", Value::String(value)) if value.len() <= LONGEST_ID => id = value,
                // RFC 9842 §2.1.4: others are not to be used.
                ("type", Value::Token(value)) if value == "raw" => {}
                ("match" | "match-dest" | "id" | "type", _) => return None,
                // RFC 9651 §1.1 lets more be added.
                _ => {}
            }
        }
        let text = text?;
        let pattern = Pattern::read(&text, url)?;
        Some(Offer { text, pattern, destinations, id })
    }

    /// `Dictionary-ID`; none where the dictionary has none.
    pub fn id_field(&self) -> Option<String> {
        let escaped = self.id.replace('\\', "\\\\").replace('"', "\\\"");
        (!self.id.is_empty()).then(|| format!("\"{escaped}\""))
    }
}

/// `Available-Dictionary` of one with this SHA-256 hash.
pub fn available(hash: &[u8; 32]) -> String {
    format!(":{}:", STANDARD.encode(hash))
}

#[derive(Debug, PartialEq, Eq)]
enum Value {
    String(String),
    Token(String),
    /// Of strings.
    List(Vec<String>),
    /// What nothing here is made of.
    Other,
}

/// RFC 9651 §4.2, as far as it is needed: what is not well-formed is nothing at all.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn of(field: &'a str) -> Option<Reader<'a>> {
        (field.len() <= LONGEST && field.is_ascii()).then_some(Reader(field.as_bytes()))
    }

    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_it = self.peek() == Some(wanted);
        if is_it {
            self.0 = &self.0[1..];
        }
        is_it
    }

    fn skip(&mut self, spaces: &[u8]) {
        while self.peek().is_some_and(|byte| spaces.contains(&byte)) {
            self.0 = &self.0[1..];
        }
    }

    fn run(&mut self, is_of: impl Fn(u8) -> bool) -> String {
        let length = self.0.iter().take_while(|byte| is_of(**byte)).count();
        let (run, rest) = self.0.split_at(length);
        self.0 = rest;
        run.iter().map(|byte| char::from(*byte)).collect()
    }

    /// RFC 9651 §4.2.2.
    fn dictionary(mut self) -> Option<Vec<(String, Value)>> {
        let mut members = Vec::new();
        self.skip(b" ");
        while self.peek().is_some() {
            let name = self.key()?;
            let value = if self.take(b'=') { self.item_or_list()? } else { Value::Other };
            self.parameters()?;
            members.retain(|(before, _)| *before != name);
            members.push((name, value));
            self.skip(b" \t");
            if self.peek().is_some() {
                if !self.take(b',') {
                    return None;
                }
                self.skip(b" \t");
                self.peek()?;
            }
        }
        Some(members)
    }

    fn key(&mut self) -> Option<String> {
        let begins = self.peek().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'*');
        let is_of = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte);
        begins.then(|| self.run(is_of))
    }

    fn item_or_list(&mut self) -> Option<Value> {
        if !self.take(b'(') {
            return self.bare();
        }
        let (mut strings, mut is_of_strings) = (Vec::new(), true);
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(if is_of_strings { Value::List(strings) } else { Value::Other });
            }
            match self.bare()? {
                Value::String(value) => strings.push(value),
                _ => is_of_strings = false,
            }
            self.parameters()?;
            if !matches!(self.peek()?, b' ' | b')') {
                return None;
            }
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.bare()?;
            }
        }
        Some(())
    }

    fn bare(&mut self) -> Option<Value> {
        match self.peek()? {
            b'"' => self.string().map(Value::String),
            byte if byte.is_ascii_alphabetic() || byte == b'*' => {
                let is_of = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                Some(Value::Token(self.run(is_of)))
            }
            byte if byte.is_ascii_digit() || b"-:?@%".contains(&byte) => {
                self.0 = &self.0[1..];
                self.run(|byte| byte.is_ascii_alphanumeric() || b"+/=.:-%\"".contains(&byte));
                Some(Value::Other)
            }
            _ => None,
        }
    }

    fn string(&mut self) -> Option<String> {
        self.take(b'"');
        let mut text = String::new();
        loop {
            let byte = self.peek()?;
            self.0 = &self.0[1..];
            match byte {
                b'"' => return Some(text),
                b'\\' => {
                    let escaped = self.peek().filter(|byte| b"\"\\".contains(byte))?;
                    self.0 = &self.0[1..];
                    text.push(char::from(escaped));
                }
                b' '..=b'~' => text.push(char::from(byte)),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(field: &str) -> Option<Offer> {
        Offer::read(field, &Url::parse("https://site.test/app/main.js").unwrap())
    }

    #[test]
    fn what_rfc_9842_shows_is_understood() {
        let offer = read("match=\"/product/*\", match-dest=(\"document\")").unwrap();
        assert_eq!(
            (offer.text.as_str(), &offer.destinations[..]),
            ("/product/*", &["document".to_owned()][..])
        );
        assert_eq!(offer.id_field(), None);
        let offer = read("match=\"/app/*/main.js\", id=\"dictionary-12345\"").unwrap();
        assert_eq!(offer.id_field().as_deref(), Some("\"dictionary-12345\""));
        assert!(read("match=\"/app/*\", type=raw").is_some());
        assert!(read("id=\"a\\\"b\\\\\",match=\"*\";p=1;q , later=?1, more=(1 2 3)").is_some_and(|offer| {
            offer.id == "a\"b\\" && offer.id_field().as_deref() == Some("\"a\\\"b\\\\\"")
        }));
        assert!(
            read("match=\"/a\", match=\"/b\"").is_some_and(|offer| offer.text == "/b"),
            "the last counts"
        );
        assert!(read("match=\"/a\", match-dest=()").is_some_and(|offer| offer.destinations.is_empty()));
    }

    #[test]
    fn what_is_not_well_formed_or_of_another_kind_is_none() {
        for field in [
            "",
            "id=\"a\"",
            "match=/a",
            "match=\"/a",
            "match=\"/a\",",
            "match=\"/a\" id=\"b\"",
            "match=\"/a\", type=shared",
            "match=\"/a\", type=\"raw\"",
            "match=\"/a\", match-dest=\"document\"",
            "match=\"/a\", match-dest=(document)",
            "match=\"/a\", match-dest=(\"document\"",
            "match=\"https://else.test/*\"",
            "Match=\"/a\"",
            "match=\"/é\"",
        ] {
            assert_eq!(read(field), None, "{field}");
        }
        assert_eq!(read(&format!("match=\"/a\", id=\"{}\"", "a".repeat(LONGEST_ID + 1))), None);
        assert!(read(&format!("match=\"/a\", id=\"{}\"", "a".repeat(LONGEST_ID))).is_some());
    }

    #[test]
    fn a_hash_is_a_byte_sequence() {
        assert_eq!(available(&[0; 32]), ":AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:");
    }

    proptest! {
        #[test]
        fn any_field_is_an_offer_or_none(field in "\\PC{0,60}", parts in proptest::collection::vec("[a-z*]{1,4}|=|\"|\\(|\\)|,| |;|\\\\|/|:", 0..20)) {
            let _ = read(&field);
            let _ = read(&parts.concat());
        }
    }
}

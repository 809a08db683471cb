//! `Use-As-Dictionary` as it is read, `Available-Dictionary` and `Dictionary-ID` as they are written (RFC 9842 §2): structured
//! fields (RFC 9651).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parser};
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
        if field.len() > LONGEST {
            return None;
        }
        let members: Dictionary = Parser::new(field).parse().ok()?;
        for (name, value) in &members {
            let item = match value {
                ListEntry::Item(item) => Some(&item.bare_item),
                ListEntry::InnerList(list) if name.as_str() == "match-dest" => {
                    destinations = strings(list)?;
                    continue;
                }
                ListEntry::InnerList(_) => None,
            };
            match (name.as_str(), item) {
                ("match", Some(BareItem::String(value))) => text = Some(value.as_str().to_owned()),
                ("id", Some(BareItem::String(value))) if value.as_str().len() <= LONGEST_ID => {
                    value.as_str().clone_into(&mut id);
                }
                // RFC 9842 §2.1.4: others are not to be used.
                ("type", Some(BareItem::Token(value))) if value.as_str() == "raw" => {}
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

/// The strings of a list; `None` where there is anything else in it.
fn strings(list: &InnerList) -> Option<Vec<String>> {
    list.items.iter().map(|item| item.bare_item.as_string().map(|text| text.as_str().to_owned())).collect()
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

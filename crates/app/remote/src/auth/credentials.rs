//! The Basic scheme (RFC 7617): the question, and the name and password that answer it. No I/O.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::header::PROXY_AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

/// RFC 9110 §11.2: token68 allows padding, and clients without it are seen.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A name and a password as a client gives them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) name: String,
    pub(super) password: String,
}

// Never the password.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The field is not what the Basic scheme says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl Credentials {
    /// Reads `Proxy-Authorization`; `None` where there is none.
    ///
    /// # Errors
    /// There are several, or it is not of the Basic scheme, no base64, without colon, or has control characters.
    pub(super) fn read(fields: &HeaderMap) -> Result<Option<Credentials>, Unreadable> {
        let mut values = fields.get_all(PROXY_AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Unreadable);
        }
        let text = value.to_str().map_err(|_| Unreadable)?;
        let (scheme, token) = text.trim().split_once(' ').ok_or(Unreadable)?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(Unreadable);
        }
        let bytes = BASE64.decode(token.trim_start_matches(' ')).map_err(|_| Unreadable)?;
        // RFC 7617 §2.1: UTF-8 is asked for; some clients send ISO 8859-1 whatever they are asked.
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect());
        if text.chars().any(char::is_control) {
            return Err(Unreadable);
        }
        // RFC 7617 §2: the first colon ends the name.
        let (name, password) = text.split_once(':').ok_or(Unreadable)?;
        Ok(Some(Credentials { name: name.into(), password: password.into() }))
    }
}

/// The value of `Proxy-Authenticate` (RFC 7617 §2). Settings see to it that the realm is of printable ASCII.
pub(crate) fn challenge(realm: &str) -> HeaderValue {
    let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_str(&format!("Basic realm=\"{quoted}\", charset=\"UTF-8\""))
        .unwrap_or_else(|_| HeaderValue::from_static("Basic realm=\"Farhop\", charset=\"UTF-8\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&[u8]]) -> Result<Option<(String, String)>, Unreadable> {
        let mut fields = HeaderMap::new();
        for value in values {
            fields.append(PROXY_AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        Ok(Credentials::read(&fields)?.map(|it| (it.name, it.password)))
    }

    fn basic(user_pass: impl AsRef<[u8]>) -> String {
        format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(user_pass))
    }

    #[test]
    fn names_and_passwords_are_read() {
        // RFC 7617 §2 and §2.1.
        let aladdin = ("Aladdin".to_owned(), "open sesame".to_owned());
        assert_eq!(read(&[b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]), Ok(Some(aladdin.clone())));
        assert_eq!(read(&[b"bAsIc   QWxhZGRpbjpvcGVuIHNlc2FtZQ"]), Ok(Some(aladdin)));
        assert_eq!(read(&[b"Basic dGVzdDoxMjPCow=="]), Ok(Some(("test".into(), "123\u{a3}".into()))));
        let latin_1 = read(&[basic(b"test:123\xa3").as_bytes()]);
        assert_eq!(latin_1, Ok(Some(("test".into(), "123\u{a3}".into()))));
        let colons = read(&[basic("a::b:").as_bytes()]);
        assert_eq!(colons, Ok(Some(("a".into(), ":b:".into()))));
        assert_eq!(read(&[basic(":").as_bytes()]), Ok(Some((String::new(), String::new()))));
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn what_is_not_basic_is_refused() {
        let good = basic("a:b");
        for values in [
            vec![good.as_bytes(), good.as_bytes()],
            vec![b"Basic"],
            vec![b"Basic "],
            vec![b"Basic a:b"],
            vec![b"Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ=="],
            vec![b"Digest username=\"a\""],
            vec![b"Basic \xff"],
            vec![basic("without colon").as_bytes()],
            vec![basic("a:b\n").as_bytes()],
        ] {
            assert_eq!(read(&values), Err(Unreadable), "{values:?}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let credentials = Credentials { name: "anna".into(), password: "secret".into() };
        assert!(!format!("{credentials:?}").contains("secret"));
    }

    #[test]
    fn the_realm_stays_within_its_quotes() {
        assert_eq!(challenge("a \"b\" \\c"), "Basic realm=\"a \\\"b\\\" \\\\c\", charset=\"UTF-8\"");
    }
}

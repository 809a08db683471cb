//! What a client says of a dictionary that it has (RFC 9842 §2.2). It is no part of a request as that is compared here: what is
//! held or promised is never coded with one, and answers whatever the client has. It is told to ground where the request
//! crosses and nothing like the answer is held, from which less would differ.

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue};

const AVAILABLE: HeaderName = HeaderName::from_static("available-dictionary");
const ID: HeaderName = HeaderName::from_static("dictionary-id");

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct OwnDictionary(Vec<(HeaderName, HeaderValue)>);

impl OwnDictionary {
    /// Takes it out of a request; the codings that need it as well.
    pub(crate) fn take(fields: &mut HeaderMap) -> Option<OwnDictionary> {
        if !fields.contains_key(AVAILABLE) {
            return None;
        }
        let mut own = Vec::new();
        for name in [AVAILABLE, ID, ACCEPT_ENCODING] {
            own.extend(fields.get_all(&name).iter().map(|value| (name.clone(), value.clone())));
        }
        fields.remove(AVAILABLE);
        fields.remove(ID);
        let codings: Vec<&str> = fields
            .get_all(ACCEPT_ENCODING)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|coding| !needs_dictionary(coding))
            .collect();
        let others = HeaderValue::try_from(codings.join(", "));
        match others {
            Ok(others) if !others.is_empty() => drop(fields.insert(ACCEPT_ENCODING, others)),
            _ => drop(fields.remove(ACCEPT_ENCODING)),
        }
        Some(OwnDictionary(own))
    }

    /// Puts it back.
    pub(crate) fn put(&self, fields: &mut HeaderMap) {
        fields.remove(ACCEPT_ENCODING);
        for (name, value) in &self.0 {
            fields.append(name.clone(), value.clone());
        }
    }
}

fn needs_dictionary(coding: &str) -> bool {
    let name = coding.split(';').next().unwrap_or_default().trim();
    ["dcb", "dcz"].iter().any(|one| name.eq_ignore_ascii_case(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        all.iter().map(field).collect()
    }

    #[test]
    fn what_a_client_has_is_taken_out_and_put_back_as_it_was() {
        let said = fields(&[
            ("accept", "*/*"),
            ("accept-encoding", "gzip, deflate, br, zstd, dcb, DCZ;q=0.5"),
            ("available-dictionary", ":AAAA:"),
            ("dictionary-id", "\"a\""),
        ]);
        let mut asked = said.clone();
        let own = OwnDictionary::take(&mut asked).unwrap();
        let plain = fields(&[("accept", "*/*"), ("accept-encoding", "gzip, deflate, br, zstd")]);
        assert_eq!(asked, plain);
        own.put(&mut asked);
        assert_eq!(asked, said);
        assert!(OwnDictionary::take(&mut plain.clone()).is_none());
    }

    #[test]
    fn codings_that_all_need_it_leave_none() {
        let mut asked = fields(&[("accept-encoding", "dcz"), ("available-dictionary", ":AAAA:")]);
        OwnDictionary::take(&mut asked).unwrap();
        assert!(asked.is_empty());
    }
}

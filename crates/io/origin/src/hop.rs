//! Fields that live for one connection only (RFC 9110 §7.6.1). Pure.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Fields that never pass a proxy, named in Connection or not.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    header::PROXY_AUTHENTICATE,
    // RFC 9110 §11.7.3: of the next proxy, and none stands between ground and origins.
    HeaderName::from_static("proxy-authentication-info"),
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Fields that a sender must not nominate in Connection, since they are for every recipient. Taking them out on its
/// word would change what the message means further on.
const END_TO_END: [HeaderName; 10] = [
    header::HOST,
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::DATE,
    header::RANGE,
    header::VARY,
    header::VIA,
];

/// Takes out what belongs to the connection that the fields came over, Connection-nominated ones too. `TE: trailers`
/// stays if it was there: both ends forward trailers, and [`crate::Client`] nominates it anew.
pub fn strip_hop_by_hop(fields: &mut HeaderMap) {
    let wants_trailers = items(fields, &header::TE)
        .any(|item| item.split(|&byte| byte == b';').next().unwrap_or(item).trim_ascii() == b"trailers");
    let nominated: Vec<HeaderName> = items(fields, &header::CONNECTION)
        .filter_map(|item| HeaderName::from_bytes(item).ok())
        .filter(|name| !END_TO_END.contains(name))
        .collect();
    for name in nominated.iter().chain(&HOP_BY_HOP) {
        fields.remove(name);
    }
    if wants_trailers {
        fields.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

/// The items of a comma-separated field.
fn items<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .map(|item| item.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut fields: HeaderMap = HeaderMap::new();
        for (name, value) in lines {
            fields.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut fields);
        let line =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut left: Vec<_> = fields.iter().map(line).collect();
        left.sort();
        left
    }

    #[test]
    fn fields_of_the_connection_and_those_it_names_are_taken_out() {
        let left = stripped(&[
            ("accept", "*/*"),
            ("connection", "close, X-One"),
            ("connection", "x-two"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic eA=="),
            ("proxy-authentication-info", "nextnonce=\"a\""),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABk"),
            ("trailer", "x-sum"),
        ]);
        assert_eq!(left, ["accept: */*", "trailer: x-sum", "x-three: 3"]);
    }

    #[test]
    fn a_nomination_cannot_take_out_what_is_for_every_recipient() {
        let left = stripped(&[
            ("connection", "host, content-length, cache-control, cookie"),
            ("host", "a"),
            ("content-length", "3"),
            ("cache-control", "no-store"),
            ("cookie", "a=b"),
        ]);
        assert_eq!(left, ["cache-control: no-store", "content-length: 3", "host: a"]);
    }

    #[test]
    fn only_trailers_remain_of_te() {
        assert_eq!(stripped(&[("te", "gzip, trailers"), ("connection", "TE")]), ["te: trailers"]);
        assert_eq!(stripped(&[("te", "gzip;q=0.5")]), [""; 0]);
    }
}

//! Small readers of fields: lists, dates, and the fields that belong to one connection only.

use http::header::{self, HeaderMap, HeaderName};
use std::time::SystemTime;

/// Fields of one connection, besides those that `Connection` names (RFC 9110 §7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Whether a field of this name belongs to one connection and is neither forwarded nor stored.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(&name.as_str())
}

/// Removes what belongs to the connection the message came over: the known fields and those that `Connection` names.
pub fn strip_hop_by_hop(fields: &mut HeaderMap) {
    let named: Vec<HeaderName> = members(fields, &header::CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect();
    for name in named {
        // RFC 9110 §7.6.1: Connection must not name end-to-end fields that every recipient needs.
        if !matches!(
            name,
            header::CACHE_CONTROL | header::CONTENT_LENGTH | header::CONTENT_TYPE | header::HOST
        ) {
            fields.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        fields.remove(name);
    }
}

/// The comma-separated members of all fields named `name`, trimmed, without empty ones. Not for quoted strings.
pub(crate) fn members<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    fields
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|member| !member.is_empty())
}

/// The only field named `name` as a date, as it is understood at `now`; `None` if there is none, several or an invalid one.
pub(crate) fn date(fields: &HeaderMap, name: &HeaderName, now: SystemTime) -> Option<SystemTime> {
    let mut values = fields.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    crate::date::parse(value, now)
}

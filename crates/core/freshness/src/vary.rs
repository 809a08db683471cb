//! Which requests a response answers besides its own: the fields that `Vary` nominates (RFC 9111 §4.1).

use std::borrow::Cow;

use http::header::{self, HeaderMap, HeaderName};

use crate::fields::members;

/// The fields of `request` that the `Vary` of `response` names.
pub(crate) fn nominated(response: &HeaderMap, request: &HeaderMap) -> HeaderMap {
    let mut nominated = HeaderMap::new();
    for name in named(response) {
        copy(&mut nominated, &name, request);
    }
    nominated
}

/// The names in `Vary` that are names of fields.
pub(crate) fn named(response: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    members(response, &header::VARY).filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
}

/// The fields that the `Vary` of a response names; `None` where it names more than fields.
pub fn named_by_vary(response: &HeaderMap) -> Option<Vec<HeaderName>> {
    if response.get_all(header::VARY).iter().any(|value| value.to_str().is_err()) {
        return None;
    }
    let name = |name: &str| HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| name.as_str() != "*");
    members(response, &header::VARY).map(name).collect()
}

/// Whether a response varies by anything.
pub(crate) fn varies(response: &HeaderMap) -> bool {
    members(response, &header::VARY).next().is_some()
}

/// Lets `to` have the values of this field that `from` has.
pub(crate) fn copy(to: &mut HeaderMap, name: &HeaderName, from: &HeaderMap) {
    to.remove(name);
    for value in from.get_all(name) {
        to.append(name.clone(), value.clone());
    }
}

/// Whether `request` has the same values as `nominated` in every field that the `Vary` of `response` names
/// (RFC 9111 §4.1: MUST NOT use it else). `Vary: *` matches nothing.
pub fn vary_matches(response: &HeaderMap, nominated: &HeaderMap, request: &HeaderMap) -> bool {
    response.get_all(header::VARY).iter().all(|value| value.to_str().is_ok())
        && members(response, &header::VARY).all(|name| match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) if name.as_str() != "*" => is_alike(&name, nominated, request),
            _ => false,
        })
}

/// Whether both have this field with the same meaning, or neither has it. RFC 9111 §4.1: what differs only in what a field's
/// own definition says is without meaning is the same. Of other fields no more is known than that several are one list.
pub(crate) fn is_alike(name: &HeaderName, a: &HeaderMap, b: &HeaderMap) -> bool {
    match (combined(name, a), combined(name, b)) {
        (Some(a), Some(b)) => a == b || normal(name, &a).is_some_and(|a| Some(a) == normal(name, &b)),
        (None, None) => true,
        _ => false,
    }
}

/// RFC 9110 §5.3: several fields of one name are one, with commas between their values.
fn combined<'a>(name: &HeaderName, fields: &'a HeaderMap) -> Option<Cow<'a, [u8]>> {
    let mut values = fields.get_all(name).iter();
    let mut combined = Cow::Borrowed(values.next()?.as_bytes().trim_ascii());
    for value in values {
        let combined = combined.to_mut();
        combined.extend_from_slice(b", ");
        combined.extend_from_slice(value.as_bytes().trim_ascii());
    }
    Some(combined)
}

/// The members of a field that says what a client takes, without what has no meaning in it; `None` for other fields, and for
/// what is not as it should be.
fn normal(name: &HeaderName, value: &[u8]) -> Option<Vec<String>> {
    let preference = matches!(
        *name,
        header::ACCEPT | header::ACCEPT_CHARSET | header::ACCEPT_ENCODING | header::ACCEPT_LANGUAGE
    );
    let text = std::str::from_utf8(value).ok()?;
    // A quoted string may hold commas and blanks that count.
    if !preference || text.contains('"') {
        return None;
    }
    let members = text.split(',').map(|member| {
        let mut parts = member.split(';').map(str::trim);
        // RFC 9110 §8.3.1, §8.3.2, §8.4.1, §8.5.1: types, charsets, codings and languages are the same in any case.
        let mut plain = parts.next().unwrap_or_default().to_ascii_lowercase();
        if *name == header::ACCEPT_ENCODING && matches!(&*plain, "x-gzip" | "x-compress") {
            // RFC 9110 §8.4.1.1, §8.4.1.3: to be considered equivalent.
            plain.drain(..2);
        }
        for part in parts {
            match weight(part) {
                Some(1000) => {}
                Some(weight) => plain += &format!(";q={weight}"),
                None => plain += &format!(";{part}"),
            }
        }
        plain
    });
    let mut members: Vec<String> = members.filter(|member| !member.is_empty()).collect();
    if *name == header::ACCEPT_ENCODING {
        // RFC 9110 §12.5.3: weights alone decide. Of languages, many servers take the first (§12.5.4), and of types, too.
        members.sort_unstable();
        members.dedup();
    }
    Some(members)
}

/// A weight in thousandths (RFC 9110 §12.4.2).
fn weight(parameter: &str) -> Option<u32> {
    let (name, value) = parameter.split_once('=')?;
    if !name.eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if !matches!(whole, "0" | "1")
        || fraction.len() > 3
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let weight: u32 = format!("{whole}{fraction:0<3}").parse().ok()?;
    (weight <= 1000).then_some(weight)
}

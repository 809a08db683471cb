//! Cache directives that an origin addresses to chosen caches, in fields of their own (RFC 9213). Which of these fields are
//! obeyed is the operator's word. It is taken down in the response where that comes from its origin, so that everything that
//! judges it later, at either end and out of any store, obeys the same; clients never see that.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The target list, best first, in a response that has one of these fields.
const TARGETS: HeaderName = HeaderName::from_static("farhop-targets");

/// Has those of the fields `targets` obeyed in an origin's response that it has; what the origin itself says to that effect
/// counts for nothing.
pub fn obey(fields: &mut HeaderMap, targets: &[HeaderName]) {
    conceal(fields);
    if !targets.iter().any(|target| fields.contains_key(target)) {
        return;
    }
    let names: Vec<&str> = targets.iter().map(HeaderName::as_str).collect();
    // Names of fields are values of fields.
    if let Ok(list) = HeaderValue::from_str(&names.join(",")) {
        fields.insert(TARGETS, list);
    }
}

/// Takes out of a response what [`obey`] has taken down, before a client gets it.
pub fn conceal(fields: &mut HeaderMap) {
    fields.remove(TARGETS);
}

/// The values of each field that is obeyed, best first, as one text (RFC 9110 §5.3).
pub(crate) fn obeyed(fields: &HeaderMap) -> impl Iterator<Item = String> {
    names(fields).filter_map(|name| {
        let lines: Result<Vec<&str>, _> = fields.get_all(name).iter().map(HeaderValue::to_str).collect();
        lines.ok().filter(|lines| !lines.is_empty()).map(|lines| lines.join(", "))
    })
}

/// Whether a field has to do with which directives are obeyed: whoever updates what is stored by a 304 needs it.
pub(crate) fn is_about_targets(fields: &HeaderMap, name: &HeaderName) -> bool {
    *name == TARGETS || names(fields).any(|target| name == target)
}

fn names(fields: &HeaderMap) -> impl Iterator<Item = &str> {
    fields.get(TARGETS).and_then(|list| list.to_str().ok()).into_iter().flat_map(|list| list.split(','))
}

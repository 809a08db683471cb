//! What a request's own `Priority` says (RFC 9218), and what it means for what was promised. Pure.

use farhop_htotp::frame::Priority;
use http::{HeaderMap, HeaderValue};

/// The priority of a request that crosses: its own word, else what its destination implies.
pub(crate) fn of_request(fields: &HeaderMap) -> Priority {
    let navigation = farhop_bundle::is_navigation(fields);
    said(fields).unwrap_or(Priority { urgency: if navigation { 1 } else { 3 }, incremental: false })
}

/// The priority of a promise that is asked for now: what ground gave it, or better if the browser says so. Nothing
/// moves back by being asked for.
pub(crate) fn of_what_is_asked(fields: &HeaderMap, promised: Priority) -> Priority {
    match said(fields) {
        Some(asked) => Priority { urgency: asked.urgency.min(promised.urgency), ..asked },
        None => promised,
    }
}

fn said(fields: &HeaderMap) -> Option<Priority> {
    fields.get("priority").and_then(of_text)
}

/// RFC 9218 §4: a dictionary with `u` and `i`; what is malformed counts as absent, member by member.
pub(crate) fn of_text(text: &HeaderValue) -> Option<Priority> {
    let text = text.to_str().ok()?;
    let mut priority = Priority::default();
    for member in text.split(',').map(str::trim) {
        match member.split_once('=') {
            Some(("u", urgency)) => priority.urgency = urgency.parse().ok().filter(|u| *u <= 7).unwrap_or(3),
            Some(("i", "?1")) => priority.incremental = true,
            None if member == "i" => priority.incremental = true,
            _ => {}
        }
    }
    Some(priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(priority: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static("priority"),
            HeaderValue::from_static(priority),
        )])
    }

    #[test]
    fn the_browsers_word_counts_and_the_default_where_it_is_malformed() {
        let of = |text| of_request(&fields(text));
        assert_eq!(of("u=1, i"), Priority { urgency: 1, incremental: true });
        assert_eq!(of("i=?1"), Priority { urgency: 3, incremental: true });
        assert_eq!(of("u=9, i=?0"), Priority { urgency: 3, incremental: false });
        assert_eq!(of_request(&HeaderMap::new()), Priority { urgency: 3, incremental: false });
    }

    #[test]
    fn what_is_asked_for_never_moves_back() {
        let promised = Priority { urgency: 2, incremental: true };
        assert_eq!(of_what_is_asked(&HeaderMap::new(), promised), promised);
        assert_eq!(of_what_is_asked(&fields("u=5"), promised), Priority { urgency: 2, incremental: false });
        assert_eq!(of_what_is_asked(&fields("u=0, i"), promised), Priority { urgency: 0, incremental: true });
    }
}

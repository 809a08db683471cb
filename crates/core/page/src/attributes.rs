//! One view of attributes for HTML tags and `Link` parameters, so that both are read by the same rules.

use crate::hint::{FetchPriority, Mode};
use lol_html::send::Element;

/// Attributes by lower-case name, values as the page means them (entities decoded).
pub(crate) trait Attributes {
    /// The value, empty for a bare attribute, `None` when absent.
    fn value(&self, name: &str) -> Option<String>;

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Lower-case and trimmed, for keywords.
    fn keyword(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| value.trim().to_ascii_lowercase())
    }

    fn fetch_priority(&self) -> FetchPriority {
        match self.keyword("fetchpriority").as_deref() {
            Some("high") => FetchPriority::High,
            Some("low") => FetchPriority::Low,
            _ => FetchPriority::Auto,
        }
    }

    /// `crossorigin`; absent means `absent`.
    fn mode(&self, absent: Mode) -> Mode {
        match self.keyword("crossorigin").as_deref() {
            None => absent,
            Some("use-credentials") => Mode::CorsWithCredentials,
            // HTML, CORS settings attributes: invalid values mean anonymous.
            Some(_) => Mode::Cors,
        }
    }
}

/// Attributes of an HTML tag.
pub(crate) struct TagAttributes<'a, 'r, 't> {
    pub(crate) tag: &'a Element<'r, 't>,
    pub(crate) max_bytes: usize,
}

impl Attributes for TagAttributes<'_, '_, '_> {
    fn value(&self, name: &str) -> Option<String> {
        let raw = self.tag.get_attribute(name).filter(|raw| raw.len() <= self.max_bytes)?;
        Some(htmlize::unescape_attribute(raw).into_owned())
    }
}

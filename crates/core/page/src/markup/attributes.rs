//! One view of attributes for HTML tags and `Link` parameters, so that both are read by the same rules.

use crate::hint::{FetchPriority, Mode};

/// Attributes by lower-case name, values as the page means them (character references decoded).
pub(crate) trait Attributes {
    /// The value, empty for a bare attribute, `None` when absent.
    fn value(&self, name: &str) -> Option<&str>;

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

/// For what no mark-up names.
pub(crate) struct NoAttributes;

impl Attributes for NoAttributes {
    fn value(&self, _: &str) -> Option<&str> {
        None
    }
}

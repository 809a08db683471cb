//! Render priority of a response, as RFC 9218 counts it.

use farhop_page::{Destination, FetchPriority, Hint, Timing};

/// RFC 9218 §4: urgency 0 (first) to 7 (background), and whether parts of the response are of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Urgency {
    /// 0 to 7.
    pub level: u8,
    /// Whether it may be interleaved with others of its level.
    pub incremental: bool,
}

impl Urgency {
    /// Of the document itself: first, and shown as it comes.
    pub const DOCUMENT: Urgency = Urgency { level: 0, incremental: true };
    /// RFC 9218 §4.1: where nothing is known.
    pub const DEFAULT: Urgency = Urgency { level: 3, incremental: false };
}

/// How soon the page needs what the hint names.
pub fn urgency(hint: &Hint) -> Urgency {
    let level = match (hint.destination, hint.timing) {
        (Destination::Style, _) if !hint.applies => 7,
        (Destination::Style, _) | (Destination::Script, Timing::Blocking) => 1,
        (Destination::Font | Destination::Fetch | Destination::Frame, _) => 2,
        (Destination::Script, _) => 3,
        (Destination::Image, Timing::Lazy) => 6,
        (Destination::Image | Destination::Track, _) => 4,
        (Destination::Icon | Destination::Manifest, _) => 7,
    };
    let level = match hint.priority {
        FetchPriority::Auto => level,
        // As browsers do: an image marked high goes before those that are not, but not before what blocks rendering.
        FetchPriority::High => level.min(2),
        FetchPriority::Low => (level + 2).min(6).max(level),
    };
    // Images arrive one after the other, in the order of the page: on a slow link the first ones whole are worth more
    // than all of them in part.
    Urgency { level, incremental: false }
}

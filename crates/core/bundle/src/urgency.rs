//! Render priority of a response, as RFC 9218 counts it.

use farhop_page::{Confidence, Destination, FetchPriority, Hint, Source, Timing};

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
///
/// | level | what |
/// |---|---|
/// | 0 | the document |
/// | 1 | stylesheets and scripts that hold up rendering |
/// | 2 | what styles in use import, their fonts; preloaded fetches, styles and fonts |
/// | 3 | scripts that wait for the document (`defer`) and modules; frames |
/// | 4 | images that may be in view |
/// | 5 | scripts that nothing waits for (`async`), images below the first screenful |
/// | 6 | lazy images and frames |
/// | 7 | icons, the manifest, stylesheets for other media, what is for the next page, guesses |
///
/// `fetchpriority=high` lifts to 2 what would come later, `low` sinks by 2, to 6 at most.
pub fn urgency(hint: &Hint) -> Urgency {
    // Images arrive one after the other, in the order of the page: on a slow link the first ones whole are worth more
    // than all of them in part. A frame is shown as it comes, as the document is.
    let incremental = hint.destination == Destination::Frame;
    if hint.confidence == Confidence::Guess || !hint.applies {
        return Urgency { level: 7, incremental };
    }
    let imported = hint.source == Source::Import;
    // What is preloaded or imported is waited for.
    let is_element = matches!(hint.source, Source::Script | Source::ModuleScript);
    let level = match (hint.destination, hint.timing) {
        (Destination::Icon | Destination::Manifest | Destination::Prefetch, _) => 7,
        (_, Timing::Lazy) => 6,
        (Destination::Style, Timing::Blocking) if !imported => 1,
        (Destination::Script, Timing::Blocking) => 1,
        (Destination::Style | Destination::Font | Destination::Fetch, _) => 2,
        (Destination::Script, Timing::Async) if is_element => 5,
        (Destination::Script | Destination::Json | Destination::Frame, _) => 3,
        (Destination::Worker | Destination::SharedWorker, _) => 3,
        _ if hint.below_fold => 5,
        (Destination::Image | Destination::Track | Destination::Object | Destination::Embed, _) => 4,
    };
    let level = match hint.priority {
        FetchPriority::Auto => level,
        // As browsers do: an image marked high goes before those that are not, but not before what blocks rendering.
        FetchPriority::High => level.min(2),
        FetchPriority::Low => (level + 2).min(6).max(level),
    };
    Urgency { level, incremental }
}

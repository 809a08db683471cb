//! RFC 9111 verdicts: may a response be stored, does a stored one answer a request, is it fresh, how is it
//! validated and updated, what does an unsafe method invalidate.
//!
//! Pure: the caller passes `now`; nothing is stored here. Not here yet: partial content (RFC 9111 §3.3, §3.4),
//! `stale-while-revalidate`, `stale-if-error`, targeted cache control.

mod age;
mod conditional;
mod directives;
mod fields;
mod invalidation;
mod lifetime;
mod storable;
mod stored;
mod verdict;

pub use conditional::{Precondition, evaluate};
pub use directives::{RequestDirectives, ResponseDirectives};
pub use fields::{is_hop_by_hop, strip_hop_by_hop};
pub use invalidation::invalidated;
pub use storable::{NotStorable, shareable, storable};
pub use stored::{Stored, vary_matches};
pub use verdict::{Verdict, Why};

/// Who may be answered from a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Any user: RFC 9111's shared cache.
    Shared,
    /// One user alone: a private cache.
    Private,
}

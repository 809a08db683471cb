//! RFC 9111 verdicts: may a response be stored, does a stored one answer a request, is it fresh, how is it
//! validated and updated, what does an unsafe method invalidate.
//!
//! Pure: the caller passes the time; nothing is stored here. In the order of a response's life: may it be stored
//! (`storable`), what is kept of it (`stored`), which requests it answers (`vary`), of which pages (`origins`), which of several is the one (`selection`), whether now (`verdict` over `age`,
//! `lifetime`, `directives`, of which `targets` says whose count), in what form (`reply` over `precondition`, `ranges`; `partial` where not all of it is there), how the origin is asked about it and what
//! that changes (`validation`; by what another may ask: `validators`), what makes it doubtful (`invalidation`), and what clients are told (`cache_status`).

mod age;
mod cache_status;
mod date;
mod directives;
mod fields;
mod fuzz;
mod invalidation;
mod lifetime;
mod origins;
mod partial;
mod precondition;
mod ranges;
mod reply;
mod selection;
mod storable;
mod stored;
mod tags;
mod targets;
mod validation;
mod validators;
mod vary;
mod verdict;

pub use cache_status::{Forward, Handling};
pub use directives::{RequestDirectives, ResponseDirectives};
pub use fields::{is_hop_by_hop, strip_hop_by_hop};
pub use fuzz::fuzz;
pub use invalidation::invalidated;
pub use lifetime::is_guess;
pub use origins::allows_any_origin;
pub use partial::Part;
pub use precondition::{Precondition, evaluate};
pub use reply::{Reply, Validation};
pub use selection::select;
pub use storable::{NotStorable, is_coded_with_dictionary, shareable, storable};
pub use stored::Stored;
pub use targets::{conceal, obey};
pub use validation::Validated;
pub use validators::Validators;
pub use vary::{named_by_vary, vary_matches};
pub use verdict::{Fallback, Verdict, Why, is_error};

/// Who may be answered from a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Any user: RFC 9111's shared cache.
    Shared,
    /// One user alone: a private cache.
    Private,
}

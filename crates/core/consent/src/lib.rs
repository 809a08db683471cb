//! Which TLS connections may be looked into, and which go through untouched. Pure: who asks, for what and when comes in,
//! a [`Decision`] goes out.
//!
//! ```text
//! Policy   the operator's word, from settings: on at all, ports, bypass lists ([`Rules`]), how long lessons last
//! Kept     what grows while the proxy runs and outlives it: users' switches ([`Switches`]) and lessons ([`Learned`])
//! ```
//!
//! [`Policy::decide`] asks them in the order in which a person would want to be asked: the operator, the user, the lists,
//! experience. It never looks at the connection itself; who does (and finds no TLS, say) may [`Learned::learn`] from it.

mod builtin;
mod decide;
mod doubts;
mod host;
mod learned;
mod leavers;
mod moment;
mod pattern;
mod rules;
mod saved;
mod set;
mod switches;

pub use builtin::{Category, builtin};
pub use decide::{Asked, Decision, Kept, Policy, Why};
pub use doubts::Doubts;
pub use host::{Host, NotAHost};
pub use learned::{Learned, Lesson, Place, Record, Terms, Untrusting};
pub use leavers::{Leavers, Stage};
pub use moment::Moment;
pub use pattern::{Form, HostPattern};
pub use rules::{Listing, Rules};
pub use saved::SavedError;
#[doc(hidden)]
pub use saved::fuzz;
pub use set::HostSet;
pub use switches::{Choices, Scope, Switches, TooMany};

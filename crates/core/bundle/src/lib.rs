//! Turns hints into the requests that this user's browser would send ([`unasked`]), decides which of them are worth
//! making ([`Plan`]), and at the other end which promise answers which request ([`Promises`]).
//!
//! Pure: times are passed in, nothing is fetched or stored here. The rule that all of it serves is DESIGN.md's
//! "never a wrong byte"; `docs/matching.md` has the table of fields that may differ.

mod client_hints;
mod companions;
mod cookies;
mod evidence;
mod family;
mod first_party;
mod likeness;
mod loads;
mod matching;
mod plan;
mod promises;
mod redirect;
mod referrer;
mod site;
mod unasked;
mod unchanged;
mod urgency;
mod way;
mod workers;

pub use companions::{Companions, Place};
pub use cookies::{CookieVerdict, Cookies, JarId, Noted};
pub use evidence::{Eagerness, Evidence, Finding, Known};
pub use family::Family;
pub use first_party::FirstParty;
pub use likeness::Likeness;
pub use loads::{LoadId, is_attachment, opens_frame, opens_page};
pub use matching::{Mismatch, PRIVATE_TO, compare, is_navigation, is_speculative, sameness, unfamiliar};
pub use plan::{Budget, Decision, NeverUnasked, Plan, Room, Skip};
pub use promises::{Answer, Lost, PromiseId, Promises, WhyAsk};
pub use redirect::{Navigation, leads_to};
pub use referrer::policy_of as referrer_policy;
pub use unasked::{Load, Unasked, content_policies, unasked};
pub use unchanged::not_modified;
pub use urgency::{Urgency, urgency};
pub use way::Way;

//! What happens at an end, told once: each event is declared in [`event`], with what it counts.
//!
//! Counters, the event stream of the control socket and the log derive from the declarations. An end
//! holds one [`Bus`] and hands out clones. This crate watches: it decides nothing about any request, and
//! nobody may read it to decide.

mod bus;
mod counters;
mod declare;
pub mod event;
mod exchange;
mod privacy;
mod reference;
mod words;

pub use bus::{Bus, Stamped, Subscription};
pub use counters::{Counters, Tally};
pub use event::Event;
pub use exchange::ExchangeId;
pub use privacy::shown_url;
pub use reference::reference;
pub use words::{AnsweredFrom, Bypass, Crossing, Level, PromiseEnd, Side, Word};

//! The link manager's judgement: which class a flow is of, what each class has of a link, which calls there is room for,
//! and how good they will sound. BACOPT's link manager and traffic classifier (Davern, Nashid Islam, Sreenan, 2012, §4) are
//! where it comes from; names are those of RFC 2474, 2597 and 3246.
//!
//! Pure: it is handed the time and what was seen of a flow. Queues, rules and sockets are its callers'.

pub mod calls;
mod class;
pub mod classify;
mod dscp;
mod early;
mod follow;
mod patient;
mod plan;
pub mod quality;

pub use class::{Queue, Service};
pub use dscp::{AfClass, Codepoint, DropPrecedence, Phb, UnknownName};
pub use early::{Counted, Early, Losses};
pub use follow::{Bounds, Follower};
pub use patient::{Ceiling, Patient};
pub use plan::{Plan, PlanError, Queued, Share, Shares};

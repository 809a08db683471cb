//! The satellite link live: `core/orbit` between two TUN devices, so that real kernels stand on both sides.
//!
//! One thread per direction reads what its kernel sends, stamps it, hands it to the model and writes it out
//! on the other side when the model says so. What the link does to a packet is the model's affair; where
//! the devices are and who uses them is the testbed's.

mod activity;
mod flows;
mod header;
mod lane;
mod lateness;
mod link;
mod record;

pub use activity::Activity;
pub use lateness::LatenessSummary;
pub use link::{Link, LinkHandle};
pub use record::{LoadRecord, WayRecord};

/// What stops a link from starting.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the emulated link: {0}")]
pub struct StartError(#[from] std::io::Error);

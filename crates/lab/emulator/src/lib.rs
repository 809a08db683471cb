//! The satellite link live: `core/orbit` between two TUN devices, so that real kernels stand on both sides.
//!
//! Several terminals may share it: each has a pair of devices of its own, one on either side.
//!
//! One thread per direction reads what its kernel sends, stamps it, hands it to the model and writes it out
//! on the other side when the model says so. What the link does to a packet is the model's affair; where
//! the devices are and who uses them is the testbed's.

mod activity;
mod desk;
mod flows;
mod header;
mod lane;
mod lateness;
mod link;
mod record;
mod standstill;

pub use activity::Activity;
pub use desk::{Counter, Desk};
pub use lateness::LatenessSummary;
pub use link::{Hop, Link, LinkHandle};
pub use record::{LoadRecord, WayRecord};

/// What stops a link from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Of the machine below.
    #[error("cannot start the emulated link: {0}")]
    System(#[from] std::io::Error),
    /// Capacity on demand is for fewer.
    #[error(
        "the link {link} gives capacity to {places} of ours, and {terminals} terminals are to share it; say 'terminals = {terminals}' in its [return.on_demand]"
    )]
    Seats {
        /// The profile's name.
        link: String,
        /// Terminals that are given capacity.
        places: u16,
        /// Terminals that there are.
        terminals: usize,
    },
}

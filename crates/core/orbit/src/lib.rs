//! The satellite path in virtual time: delays, rates, queues, losses and outages.
//!
//! The same model drives tests in virtual time, `farhop local` in process, and the live emulator between
//! two kernels. Pure: `now` is handed in as the time since an epoch of the caller's choice and must not run
//! backwards; randomness comes from a seed. It must never read a clock, open a socket or start a thread.
//!
//! Calling order, for a [`Path`] as for a single [`Direction`]:
//!
//! ```text
//!   handle_packet(now, …)        for each packet that reaches the link
//!   poll_transmit(now)           until None: the packets that leave it by `now`
//!   next_wakeup()                when to poll next, None while nothing is under way
//! ```
//!
//! ```
//! use farhop_orbit::{Path, Profile, Way};
//! use farhop_units::Bytes;
//! use std::time::Duration;
//!
//! let mut path = Path::new(&Profile::named("geo-hylas2")?, 1);
//! path.handle_packet(Duration::ZERO, Way::Forward, Bytes(1000), "hello");
//! let due = path.next_wakeup().expect("one packet is under way");
//! assert_eq!(due, Duration::from_millis(326)); // 1 ms to serialise at 8 Mbit/s, 325 ms to fly
//! assert_eq!(path.poll_transmit(due).map(|(_, sent)| sent.packet), Some("hello"));
//! # Ok::<(), farhop_orbit::UnknownProfile>(())
//! ```

mod bucket;
mod codel;
mod counters;
mod crossing;
mod demand;
mod direction;
mod fade;
mod file;
mod leg;
mod loss;
mod path;
mod profile;
mod queued;
mod rng;
mod schedule;
mod supply;
mod trace;
mod wifi;

pub use counters::{Counters, Tally};
pub use demand::{DemandError, Entitlement, OnDemand, Others, Signalling, Volume};
pub use direction::{Class, Direction, DropReason, Fate, Label, Transmit};
pub use fade::{Adaptation, Fade, FadeError, Modcod};
pub use file::{FileError, Open, fuzz_satellite};
pub use leg::{CoDel, Discipline, Leg, Policer, Reordering, Segment, Supply};
pub use loss::{Bursts, Loss};
pub use path::{Path, Way};
pub use profile::{Profile, UnknownProfile};
pub use rng::Rng;
pub use schedule::{Handovers, Outage, Schedule};
pub use supply::{Steps, StepsError};
pub use trace::{Trace, TraceError};
pub use wifi::Wifi;

//! `farhop lab transport`: downloads over every kind of carrier, directly, and through what others made, on one emulated link
//! in turn, each as a multiple of what the link allows.
//!
//! [`Hop`] is the place: a testbed, origins that send with each controller of the kernel, both ends of Farhop as processes; the
//! bounds of `farhop lab measure 4` are measured there too. `workload` and `route` list what is downloaded and how, `plan` what
//! of it, `course` does it in turn.

mod cli;
mod client;
mod course;
mod error;
mod hop;
mod plan;
mod ride;
mod route;
mod workload;

pub use cli::{TransportArguments, transport};
pub use client::{Got, PATIENCE, Wanted, first_line, head};
pub use error::TransportError;
pub use hop::{CONTROLLERS, Hop, Load, Via};
pub use plan::Plan;
pub use ride::load_on;
pub use route::{ROUTES, Route};
pub use workload::{SMALL, WORKLOADS, Workload, beside_bulk, bulk, small};

//! Connections as a client sees them: what is answered, in which framing, and how they end.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod client;
mod endings;
mod responses;
mod turns;
mod uploads;

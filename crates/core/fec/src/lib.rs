//! Forward error correction below QUIC: numbered packets, now and then a sum of the last of them, from which the receiver
//! makes good what was lost without asking. Random loss then costs no round trips, and QUIC does not notice.
//! Pure: the time and datagrams come in, datagrams come out; the socket around it is `io/transport`'s.
//!
//! ```text
//!  QUIC ── packets ─▶ Layer ── sources, repairs ─▶ path ─▶ Layer ── packets, recovered ones ─▶ QUIC
//!                       ◀──────────── reports of loss ────────┘
//! ```
//! The code is a sliding window ([`encoder`], [`decoder`]; after RFC 8681, with Cauchy coefficients over GF(2⁸)): a repair
//! covers the last 128 packets, so that a burst is spread over many repairs and the loss of one packet waits for one
//! repair only. How many there are follows the loss that the receiver reports ([`estimate`]), within a bound; none while
//! nothing is lost. docs/fec.md specifies what crosses, docs/decisions says why.

pub mod decoder;
pub mod encoder;
mod ends;
pub mod estimate;
mod field;
mod fuzz;
mod greeting;
pub mod halves;
mod layer;
mod loss;
mod queue;
mod receiver;
mod sender;
mod symbol;
pub mod wire;

#[doc(hidden)]
pub use fuzz::fuzz;
pub use layer::{Counters, Layer, Outcome, Secret, Terms};
pub use receiver::Received;
pub use sender::Sent;

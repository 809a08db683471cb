//! HTOTP, the Hypertext Object Transfer Protocol of the long hop: frames, field sections, the scheduler, the session
//! and, for carriers over TCP, the streams below it, as pure state machines. Time is handed in as a `Duration` since the
//! caller's epoch; nothing here touches a socket, a clock or randomness. `docs/htotp.md` is the specification.

pub mod datagram;
pub mod fields;
pub mod flow;
pub mod frame;
pub mod head;
pub mod journal;
pub mod mirror;
pub mod mux;
pub mod scheduler;
pub mod session;
pub mod unread;
pub mod varint;

pub use head::{RequestHead, ResponseHead};

//! How who knows what will be sent asks a satellite modem, or a network control centre, for return-link capacity ahead of the packets, and what it is given:
//! the datagrams ([`Question`], [`Answer`]; docs/capacity.md) and when they are sent ([`Asker`]). Pure: no socket, no clock.
//!
//! ```text
//!   expect(bytes), sent(bytes)       what there will be to send, and what of it was handed over
//!   poll_transmit(now)               a datagram to be sent, until None
//!   handle_answer(now, answer)       what came back
//!   next_wakeup()                    when to poll next, None while nothing is expected
//! ```

mod asker;
mod message;

pub use asker::Asker;
pub use message::{Answer, Expect, LONGEST, MessageError, Question, Tell, fuzz};

//! HTTP/1 messages as pure functions: heads, framing and bodies, strict where a proxy must be. Nothing in
//! here touches a socket, a clock or a task; [`crate::connection`] does.
//!
//! Reading: [`HeadScanner`] finds the head, [`RequestHead::parse`] or [`ResponseHead::parse`] checks it, and
//! [`BodyDecoder`] takes the body.

mod chunk;
mod decoder;
mod fields;
mod first_line;
mod framing;
mod fuzz;
mod refusal;
mod request;
mod response;
mod scan;
mod target;
#[cfg(test)]
mod tests;

pub use decoder::{BodyDecoder, Decoded};
pub use fields::lists_token;
pub use framing::{Framing, merge_lengths};
#[doc(hidden)]
pub use fuzz::{fuzz_chunked_body, fuzz_request, fuzz_response};
pub use refusal::Refusal;
pub use request::{RequestHead, encode_request};
pub use response::ResponseHead;
pub use scan::{HeadLimits, HeadScanner, Section};
pub use target::{Authority, Scheme, Target};

pub(crate) use chunk::{allowed_trailers, encode_end, encode_line, vet_trailers};
pub(crate) use first_line::begins_request;
pub(crate) use framing::{content_length, request_persists, without_body};
pub(crate) use request::{WEBSOCKET, settle_semantics};
pub(crate) use response::{encode_head, plan, settle_body, without_framing};
pub(crate) use target::encode_bare;

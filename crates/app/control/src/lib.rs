//! The control socket of an end: how `farhop status`, the lab and later the admin API talk to it.
//!
//! A Unix socket of mode 0600; each line is a JSON object. A request is
//! `{"v":1,"command":"status","args":{…}}`, its answer `{"v":1,"ok":true,"result":…}` or
//! `{"v":1,"ok":false,"error":"…"}`, in the order of the requests. After `subscribe` the lines
//! `{"v":1,"event":{…}}` come in between, and `{"v":1,"missed":N}` where the reader was too slow.
//! Commands belong to the app that registers them, with the names of what they take; this crate knows only `counters`, `subscribe` and
//! `commands`. `docs/control.md` describes it for readers of other languages.

mod arguments;
mod client;
mod error;
mod lines;
mod protocol;
mod server;
mod socket;

pub use arguments::{Chosen, forgotten, host};
pub use client::{Client, Events, Told};
pub use error::ControlError;
pub use protocol::VERSION;
#[doc(hidden)]
pub use protocol::fuzz_request;
pub use server::Server;
pub use socket::Socket;

//! HTTP towards browsers: listening sockets, strict framing, connections of an explicit proxy, and TLS and HTTP/2 inside
//! a CONNECT.
//!
//! This crate decides what is a request and where messages end; it never decides what to answer and knows nothing of
//! the long hop. [`h1`] and [`frames`] are pure; [`connection`], [`tls`] and [`listener`] own the sockets.
//!
//! ```no_run
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use farhop_front::{Head, Listener, Settings};
//! let listener = Listener::bind("127.0.0.1:3128".parse()?, Settings::default()).await?;
//! loop {
//!     let (mut connection, _peer) = listener.accept().await;
//!     tokio::spawn(async move {
//!         while let Ok(Some(exchange)) = connection.next_request().await {
//!             let head = Head { status: http::StatusCode::NOT_FOUND, fields: http::HeaderMap::new() };
//!             if exchange.responder.respond(head, "nothing here\n".into()).await.is_err() {
//!                 break;
//!             }
//!         }
//!     });
//! }
//! # }
//! ```

mod answers;
pub mod connection;
pub mod frames;
pub mod h1;
mod h2;
pub mod listener;
mod messages;
pub mod scope;
mod serial;
pub mod settings;
pub mod socket;
pub mod tls;
pub mod trips;
pub mod windows;

pub use connection::{
    BodyError, Connection, Departure, Exchange, Head, Priorities, Protocol, RequestBody, RequestError,
    Responder, ResponseBody, Tunnel, WriteError,
};
pub use h1::{Authority, Framing, HeadLimits, Refusal, RequestHead, Scheme, Target};
#[doc(hidden)]
pub use h2::fuzz_frames;
pub use listener::{ListenError, Listener, Place};
pub use messages::{Messages, Over};
pub use scope::Scope;
pub use settings::Settings;
pub use socket::Socket;
pub use trips::TripMeter;
pub use windows::Windows;

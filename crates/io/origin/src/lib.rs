//! HTTP client towards origins: resolution, address guard, connection pools, and responses that are whole or an error.
//!
//! This crate decides how a request reaches an origin and whether what comes back can be trusted to be complete. It
//! follows no redirects, stores nothing, and knows nothing of the long hop. Names are resolved here, and the address
//! that was checked is the one that is connected to. Certificates are judged here, before an origin has seen a byte of
//! any request.

mod cidr;
mod client;
mod connect;
mod driven;
mod error;
mod faults;
mod guard;
mod hop;
mod http1;
mod http2;
mod issuer;
mod name_server_sockets;
mod name_servers;
mod open;
mod pool;
mod replay;
mod request;
mod resolve;
mod response;
mod sending;
mod settings;
mod sieve;
mod sieved;
mod tls;
mod upload;
mod vet;
mod ways;
mod websocket;

pub use cidr::{Cidr, CidrError};
pub use client::Client;
pub use connect::Destination;
pub use error::{Error, Stage};
pub use guard::{Guard, Refusal};
pub use hop::strip_hop_by_hop;
pub use name_servers::{Reply, ask_name_servers};
pub use pool::Partition;
pub use request::{Request, Scheme};
pub use resolve::{FixedResolver, Resolve, ResolveError, Resolving, SystemResolver};
pub use response::{Response, ResponseBody};
pub use settings::Settings;
#[doc(hidden)]
pub use sieve::fuzz_frames;
pub use tls::{CertificateProblem, HandshakeFailure, Trust, TrustError};
pub use upload::{Upload, UploadClosed, UploadSender};
pub use ways::Ways;
pub use websocket::{Upgraded, UpgradedStream};

//! HTTP client towards origins: resolution, address guard, connection pools, and responses that are whole or an error.
//!
//! This crate decides how a request reaches an origin and whether what comes back can be trusted to be complete. It
//! follows no redirects, stores nothing, and knows nothing of the long hop. Names are resolved here, and the address
//! that was checked is the one that is connected to.

mod cidr;
mod client;
mod connect;
mod error;
mod guard;
mod hop;
mod pool;
mod resolve;
mod response;
mod settings;
mod upload;

pub use cidr::{Cidr, CidrError};
pub use client::{Client, Request};
pub use connect::Destination;
pub use error::{Error, Stage};
pub use guard::{Guard, Refusal};
pub use hop::strip_hop_by_hop;
pub use pool::Partition;
pub use resolve::{FixedResolver, Resolve, ResolveError, Resolving, SystemResolver};
pub use response::{Response, ResponseBody};
pub use settings::Settings;
pub use upload::{Upload, UploadClosed, UploadSender};

//! The operator's own CA, and the short-lived certificates it gives to the hosts whose TLS the remote answers.
//!
//! An [`Authority`] is made on the machine that uses it; its key lives in one file that only its owner can read and
//! never leaves it. Users install its [`CaCertificate`]. [`Leaves`] answers a handshake: a certificate for one host, of
//! a key that is not the CA's, held for a while. No sockets here, and no word on whose TLS may be answered.
//!
//! ```
//! # fn example() -> Result<(), farhop_authority::AuthorityError> {
//! use farhop_authority::{Authority, Leaves, Terms};
//! let authority = std::sync::Arc::new(Authority::ephemeral(&Terms::default())?);
//! println!("install this: {}", authority.certificate().pem());
//! let leaves = Leaves::new(authority)?;
//! let certified = leaves.for_host("www.example.org")?; // for rustls::sign
//! # drop(certified);
//! # Ok(())
//! # }
//! # example().unwrap();
//! ```

mod authority;
mod cache;
mod certificate;
mod error;
mod file;
mod leaves;
mod permitted;
mod profile;
mod subject;

pub use authority::{Authority, Bridge, Terms};
pub use certificate::{CaCertificate, day};
pub use error::AuthorityError;
pub use leaves::Leaves;
pub use permitted::{Permitted, Subtree};

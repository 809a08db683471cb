//! Where each end holds responses: bodies that can be read while they arrive, and the repository that knows
//! which answers a request. In memory for now; a disk takes the same trait. No policy: whether a response may
//! be stored or used is decided by `farhop_freshness` and the app.

mod body;
mod repository;

pub use body::{Abandon, Body, Broken, Budget, Intake, Piece, Reader};
pub use repository::{Change, Eventually, Held, Memory, Partition, Repository};

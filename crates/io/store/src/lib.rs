//! Where each end holds responses: bodies that can be read while they arrive, and the repository that knows
//! which answers a request, in memory and, where a folder is named, on disk. No policy: whether a response may
//! be stored or used is decided by `farhop_freshness` and the app, what goes first by `farhop_replacement`.

mod body;
mod disk;
mod holdings;
mod invalidations;
mod repository;
mod store;

pub use body::{Abandon, Body, Broken, Budget, Intake, Piece, Reader};
pub use disk::{Disk, DiskError, DiskOptions, Key, KeyError};
pub use repository::{Change, Eventually, Extent, Held, Meant, Partition, Repository};
pub use store::{Keeping, Store};

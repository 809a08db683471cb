//! What tests share: origins with bad manners, a well-behaved one to compare with, and recorded corpora.
//!
//! Everything listens on loopback, at a port of the system's choosing, and ends when it is dropped. Nothing
//! here is for use outside tests: it panics where a test should fail.

pub mod behaviours;
pub mod clock;
pub mod conformance;
pub mod entrance;
pub mod heads;
pub mod histories;
pub mod hostile;
pub mod hostile_page;
pub mod manners;
pub mod pattern;
pub mod site;
pub mod urgent;
pub mod versions;

pub use entrance::entrance;
pub use hostile::{HostileOrigin, Step};
pub use hostile_page::HostilePage;
pub use manners::Manners;
pub use site::{File, Site, SiteOrigin};
pub use versions::Versions;

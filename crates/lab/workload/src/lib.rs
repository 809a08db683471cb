//! What the lab loads: pages made or fetched on this machine, origins that serve them, a real browser that asks for
//! them. Knows nothing of links, of Farhop's ends or of reports.

pub mod browser;
pub mod flawed;
mod noise;
pub mod npm;
pub mod origins;
pub mod packages;
pub mod pages;
mod picture;
pub mod programs;
pub mod recorded;

pub use noise::noise;
pub use picture::picture;

//! Plans as files, and how they run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod course;
mod files;
mod sample;

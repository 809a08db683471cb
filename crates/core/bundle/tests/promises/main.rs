//! "Never a wrong byte", clause by clause: which promise answers which request.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../support/mod.rs"]
mod support;

mod book;
mod bounds;
mod conditions;
mod histories;
mod leaving;
mod matching;
mod once;
mod pages;

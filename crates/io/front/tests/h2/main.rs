//! HTTP/2 connections as a client sees them.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod bodies;
mod client;
mod endings;
mod frames;
mod requests;
mod responses;
#[path = "../support/mod.rs"]
mod support;

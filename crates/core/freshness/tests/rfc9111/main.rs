//! RFC 9111's rules, one behaviour a test, a file a section.
#![allow(clippy::unwrap_used)] // helpers of tests

mod any_peer;
mod cache_status;
mod freshness;
mod invalidation;
mod origins;
mod ranges;
mod requests;
mod stale;
mod storing;
mod support;
mod targets;
mod validation;
mod vary;

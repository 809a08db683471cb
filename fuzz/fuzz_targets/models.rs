//! Fuzzes what is kept of page models, and the URLs that they learn from. The checks are in the entry function, which
//! `tests/tests/fuzz_replay.rs` calls too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farhop_models::fuzz(data));

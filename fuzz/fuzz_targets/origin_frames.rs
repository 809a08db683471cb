//! Fuzzes HTTP/2 frames of origins. The checks are in the entry function, which `tests/tests/fuzz_replay.rs` calls too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farhop_origin::fuzz_frames(data));

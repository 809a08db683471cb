//! Fuzzes both ends of header compression. The checks are in the entry function, which `tests/tests/fuzz_replay.rs` calls too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farhop_header_compression::fuzz(data));

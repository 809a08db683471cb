//! Fuzzes bodies from the hop. The checks are in the entry function, which `tests/tests/fuzz_replay.rs` calls too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farhop_squeeze::fuzz_hop(data));

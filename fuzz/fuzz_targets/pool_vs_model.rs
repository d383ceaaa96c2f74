//! See `cenote::fuzzing::pool_vs_model`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote::fuzzing::pool_vs_model(data));

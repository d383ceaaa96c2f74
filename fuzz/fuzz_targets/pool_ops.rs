//! See `cenote::fuzzing::pool_ops`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote::fuzzing::pool_ops(data));

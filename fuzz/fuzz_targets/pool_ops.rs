//! See `cenote_lab::fuzzing::pool_ops`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_lab::fuzzing::pool_ops(data));

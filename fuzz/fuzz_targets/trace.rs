//! See `cenote::fuzzing::trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote::fuzzing::trace(data));

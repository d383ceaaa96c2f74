//! See `cenote::fuzzing::scram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote::fuzzing::scram(data));

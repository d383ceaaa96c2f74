//! See `cenote_lab::fuzzing::scram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_lab::fuzzing::scram(data));

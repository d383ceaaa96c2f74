//! See `cenote::fuzzing::uri`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote::fuzzing::uri(data));

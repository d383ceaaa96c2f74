//! See `cenote_lab::fuzzing::uri`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_lab::fuzzing::uri(data));

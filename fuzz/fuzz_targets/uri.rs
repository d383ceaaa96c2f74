//! See `cenote_simulation::fuzzing::uri`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_simulation::fuzzing::uri(data));

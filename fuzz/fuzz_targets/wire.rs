//! See `cenote_simulation::fuzzing::wire`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_simulation::fuzzing::wire(data));

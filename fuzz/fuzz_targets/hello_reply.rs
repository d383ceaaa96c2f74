//! See `cenote_simulation::fuzzing::hello_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_simulation::fuzzing::hello_reply(data));

//! See `cenote_lab::fuzzing::hello_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_lab::fuzzing::hello_reply(data));

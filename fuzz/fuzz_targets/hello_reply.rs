//! See `cenote::fuzzing::hello_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote::fuzzing::hello_reply(data));

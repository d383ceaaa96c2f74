//! See `cenote_lab::fuzzing::socks5`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cenote_lab::fuzzing::socks5(data));

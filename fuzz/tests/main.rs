//! Kept inputs, and inputs made from them, without the fuzzer.

mod corpus;
mod properties;

#![doc = include_str!("../README.md")]
//!
//! # In Rust
//!
//! This crate is the C library; its Rust API has no promise. [`cenote-core`](cenote_core) is the machine.
//!
//! ```text
//! pointer     all that is read and written through pointers of C, and why that is sound
//! table       handles: numbers that are looked up, so that a wrong one is an error
//! status      results, and the text of the last error of a thread
//! pool        a pool behind its handle; input, action, event, text, inspect, verdict, trace: what C can do with it
//! cause       causes of failures, as counted references
//! options     the options of a pool
//! checked     the functions that take pointers, for Rust programs without `unsafe`
//! ```
#![expect(unsafe_code, reason = "C passes pointers, and finds functions by their names")]
#![warn(missing_debug_implementations)]
// Each call of an `unsafe` function says why it is sound.
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod action;
pub mod cause;
pub mod checked;
pub mod event;
pub mod input;
pub mod inspect;
pub mod options;
mod pointer;
pub mod pool;
pub mod status;
mod table;
pub mod text;
pub mod trace;
pub mod verdict;

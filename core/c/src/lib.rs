#![doc = include_str!("../README.md")]
//!
//! # In Rust
//!
//! This crate is the C library; its Rust API has no promise. [`cenote-core`](cenote_core) is the machine.
#![expect(unsafe_code, reason = "C passes pointers, and finds functions by their names")]
#![warn(missing_debug_implementations)]
// Each call of an `unsafe` function says why it is sound.
#![warn(clippy::undocumented_unsafe_blocks)]

// In this order they are in the header.
pub mod status;

// A pool behind its handle.
pub mod pool;

pub mod options;

// What a driver tells a pool, what the pool wants done, and what it tells.
pub mod input;

pub mod action;

pub mod event;

pub mod text;

pub mod cause;

pub mod verdict;

pub mod inspect;

pub mod deadline;

pub mod trace;

// A client of several servers.
#[cfg(feature = "client")]
pub mod client;

// The functions that take pointers, for Rust programs without `unsafe`.
pub mod checked;

// All that is read and written through pointers of C, and why that is sound.
mod pointer;

// Handles: numbers that are looked up, so that a wrong one is an error.
mod table;

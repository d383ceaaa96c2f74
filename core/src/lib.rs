//! MongoDB's Connection Monitoring and Pooling as a state machine: inputs in, actions out, no
//! clock, no socket and no thread inside.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

extern crate alloc;

pub mod address;
pub mod pool;

#[cfg(feature = "std")]
pub mod client;
#[cfg(feature = "std")]
pub mod connect;
#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "std")]
pub mod log;
#[cfg(feature = "std")]
pub mod monitor;
#[cfg(feature = "std")]
mod number;
#[cfg(feature = "std")]
pub mod sdam;
#[cfg(feature = "std")]
pub mod trace;
#[cfg(feature = "std")]
pub mod uri;
#[cfg(feature = "std")]
pub mod wire;

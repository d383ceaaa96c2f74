//! The proofs of the Cenote connection pool that need no socket: a reference model, in lockstep with the machine;
//! exploration of all short sequences of inputs; simulated worlds with random faults; transcripts; and the bodies of the
//! fuzz targets.
//!
//! It is deterministic: the same seed gives the same run.

#![forbid(unsafe_code)]

#[cfg(feature = "simulate")]
pub mod command;
pub mod explore;
pub mod fuzzing;
pub mod lockstep;
pub mod model;
pub mod random_run;
pub mod shrink;
#[cfg(feature = "simulate")]
pub mod simulate;
pub mod transcript;

/// The README's example runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

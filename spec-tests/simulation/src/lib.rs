//! The Cenote connection pool without sockets: a reference model, exploration of all short
//! sequences of inputs, simulation with random faults, replay of traces, studies of options, and the
//! bodies of the fuzz targets.
//!
//! It is deterministic: the same seed gives the same run.

#![forbid(unsafe_code)]

mod agenda;
pub mod explore;
pub mod fuzzing;
pub mod lockstep;
pub mod model;
pub mod replay;
pub mod simulate;
pub mod state_machine;
pub mod study;
pub mod transcript;

/// The README's example runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

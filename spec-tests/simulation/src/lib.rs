//! The Cenote connection pool without sockets: a reference model, exploration of all short
//! sequences of inputs, simulation with random faults, replay of traces, predictions, and the
//! bodies of the fuzz targets.
//!
//! It is deterministic: the same seed gives the same run.
//!
//! Without the feature `simulation`, which is on by default, the crate has [`model`], [`lockstep`] and [`replay`].

#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "simulation"),
    expect(dead_code, unused_imports, reason = "only what the feature adds uses all of it")
)]

mod agenda;
#[cfg(feature = "simulation")]
pub mod explore;
pub mod fuzzing;
pub mod lockstep;
pub mod model;
pub mod replay;
#[cfg(feature = "simulation")]
pub mod simulate;
#[cfg(feature = "simulation")]
pub mod state_machine;
#[cfg(feature = "simulation")]
pub mod transcript;
#[cfg(feature = "simulation")]
pub mod what_if;

/// The README's example runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! The monitor machine, in virtual time: every rule of server monitoring that it keeps, and any
//! order of inputs.

#![cfg(feature = "protocol")]

mod application;
mod bad_input;
mod failures;
mod polling;
mod properties;
mod round_trips;
mod streaming;
mod world;

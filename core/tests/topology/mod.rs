//! The topology machine: what SDAM says of a deployment, beyond the official files, and any order of inputs.

#![cfg(feature = "protocol")]

mod bad_input;
mod discovery;
mod properties;
mod selection;
mod steps;
mod trace;
mod world;

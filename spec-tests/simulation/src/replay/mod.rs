//! Traces: generation for tests, and everything that `cenote replay` does.

pub mod clock;
pub mod condition;
pub mod diff;
pub mod explain;
pub mod filter;
pub mod history;
pub mod holders;
pub mod json;
pub mod picture;
pub mod random;
pub mod record;
pub mod shrink;
pub mod step_reader;
pub mod stepper;
mod symbolic;
pub mod text;
pub mod topology;
pub mod traffic;

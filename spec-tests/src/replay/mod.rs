//! Traces: where those of tests come from, and what `cenote replay` does with any.

pub mod condition;
pub mod diff;
pub mod explain;
pub mod filter;
pub mod history;
pub mod json;
pub mod mirror;
pub mod picture;
pub mod random;
pub mod record;
pub mod shrink;
pub mod stepper;
mod symbolic;
pub mod text;
pub mod traffic;
pub mod watch;

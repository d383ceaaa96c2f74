//! Traces of the Cenote connection pool for its operators: replay, explanation, pictures, shrinking, and what other
//! options would have done.
//!
//! It is deterministic: the same trace gives the same answers.

#![forbid(unsafe_code)]

pub mod agenda;
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
pub mod what_if;

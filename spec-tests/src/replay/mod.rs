//! Traces: where those of tests come from, and what `cenote replay` does with any.

pub mod random;

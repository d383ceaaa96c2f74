//! The laboratory of the Cenote connection pool: everything that judges `cenote-core` from
//! outside.

#![forbid(unsafe_code)]

pub mod conform;
pub mod fuzzing_wire;
pub mod workload;

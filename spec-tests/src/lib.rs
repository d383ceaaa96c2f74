//! The laboratory of the Cenote connection pool: everything that judges `cenote-core` from
//! outside.

#![forbid(unsafe_code)]

pub mod conform;
pub mod explore;
pub mod fuzzing;
pub mod lockstep;
pub mod model;

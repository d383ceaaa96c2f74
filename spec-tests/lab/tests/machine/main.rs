//! The pool's machine against its model, its transcripts, its checker and itself.

#[cfg(feature = "simulate")]
mod check_machine;
mod checkpoint;
mod explore;
#[cfg(feature = "simulate")]
mod interrupted;
mod model;
#[cfg(feature = "simulate")]
mod simulate;
mod trace;
mod transcripts;

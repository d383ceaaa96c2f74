//! The pool's machine against its model, its transcripts, its checker and itself.

mod check_machine;
mod checkpoint;
mod explore;
mod interrupted;
mod model;
mod simulate;
mod trace;
mod transcripts;

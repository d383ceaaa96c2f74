//! Recorded runs of threads that share a pool: the machine does the same again in a replay without a shell.

mod replayed;
mod run;

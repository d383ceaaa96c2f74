//! Recorded runs of both shells: the machine does the same again in a replay without a shell.

mod modes;
mod on_mio;
mod on_tokio;
mod replayed;
mod unchanged;

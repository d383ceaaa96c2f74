//! The tokio shell, recorded: what the machine did in it, it does again without it.

mod chance;
mod replayed;
mod run;
mod unchanged;

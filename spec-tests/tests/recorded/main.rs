//! Both shells, recorded: what the machine did in them, it does again without them.

mod chance;
mod moods;
mod on_mio;
mod on_tokio;
mod replayed;
mod unchanged;

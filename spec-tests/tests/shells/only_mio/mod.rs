//! What mio alone can do.

mod debug;
mod embedded;
#[cfg(target_os = "linux")]
mod embedded_threads;
mod foreign;
mod fork;
mod streams;
mod transports;
mod world;

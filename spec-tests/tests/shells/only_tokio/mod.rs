//! What tokio alone can do.

mod cancellation;
mod debug;
mod idle;
mod operations;
mod raw;
mod runtimes;
mod streams;
mod transports;
mod world;

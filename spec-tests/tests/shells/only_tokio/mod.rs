//! What tokio alone can do.

mod cancellation;
mod debug;
mod operations;
mod raw;
mod runtimes;
mod streams;
mod transports;
mod world;

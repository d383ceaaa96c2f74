//! The tokio shell on real sockets, against the endpoint.

mod cancellation;
mod operations;
mod raw;
mod runtimes;
mod streams;
mod transports;
mod world;

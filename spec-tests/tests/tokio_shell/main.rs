//! The tokio shell on real sockets, against the endpoint.

mod failures;
mod operations;
mod runtimes;
mod transports;
mod world;

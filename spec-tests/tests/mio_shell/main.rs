//! The mio shell on real sockets, against the endpoint.

mod embedded;
mod failures;
mod foreign;
mod operations;
mod raw;
mod streams;
mod transports;
mod world;

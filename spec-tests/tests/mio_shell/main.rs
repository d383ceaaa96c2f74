//! The mio shell on real sockets, against the endpoint.

mod embedded;
mod foreign;
mod operations;
mod streams;
mod transports;
mod world;

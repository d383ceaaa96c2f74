//! What mio alone can do.

mod embedded;
mod foreign;
mod operations;
mod streams;
mod transports;
mod world;

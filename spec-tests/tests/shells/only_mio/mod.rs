//! What the mio shell alone can do.

mod embedded;
mod foreign;
mod operations;
mod streams;
mod transports;
mod world;

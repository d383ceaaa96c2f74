//! What mio alone can do.

mod embedded;
mod foreign;
mod streams;
mod transports;
mod world;

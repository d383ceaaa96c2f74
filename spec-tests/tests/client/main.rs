//! The client of the tokio shell on real sockets, against endpoints.

mod bad_input;
mod closing;
mod contract;
mod credentials;
mod crowd;
mod load_balanced;
mod replica_set;
mod trouble;
mod world;

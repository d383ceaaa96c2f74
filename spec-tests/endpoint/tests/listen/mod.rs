//! The endpoint on real sockets, as a client sees it.

mod client;
mod connections;
mod sockets;
mod tls;

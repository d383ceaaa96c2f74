//! The endpoint on real sockets, as a client sees it that knows nothing of it.

mod client;
mod connections;
mod sockets;
mod tls;

//! Connections that break at every byte, on real sockets and both shells.

mod every_byte;
mod itself;
mod on_mio;
mod on_tokio;
mod venue;

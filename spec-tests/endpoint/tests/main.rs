//! The endpoint in virtual time, on real sockets, and what it leaves behind.

mod listen;
mod server;
mod stop;

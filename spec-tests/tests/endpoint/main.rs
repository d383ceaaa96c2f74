//! The endpoint as a client sees it, in virtual time and without a socket.

mod client;
mod hello;
mod streaming;

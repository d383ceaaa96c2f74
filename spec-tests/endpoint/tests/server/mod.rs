//! The endpoint as a client sees it, in virtual time and without a socket.

mod anything;
mod auth;
mod client;
mod data;
mod fail_points;
mod faults;
mod hello;
mod streaming;

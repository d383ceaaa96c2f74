//! Establishing connections, against servers and proxies that say what they are told to.
//!
//! How: `server.rs` plays a server that knows one user, built on the same primitives but not on the
//! code under test, with one place to lie; the tables are pairs of a lie and the error it gets.

#![cfg(feature = "protocol")]

mod aws;
mod bad_input;
mod conversations;
mod credentials;
mod hello;
mod metadata;
mod metadata_limit;
mod oidc;
mod on_the_wire;
mod own_mechanism;
mod refused;
mod secrecy;
mod server;
mod socks5;
mod worked_examples;

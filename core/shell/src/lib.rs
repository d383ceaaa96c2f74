//! What shells of the machine in [`cenote_core::pool`] have in common, and the machine must not have:
//! locks, threads, files, the environment. It is for authors of shells; what users of a pool meet of
//! it, the shells show under their own names.
//!
//! There is no runtime here, no socket, and no decision about a pool. Whatever needs the pool's lock
//! is given a closure that takes it, so that a shell may keep whichever lock it likes.
//!
//! | module | what it is |
//! |---|---|
//! | [`builder`] | what a builder is told of a pool |
//! | [`client`] | the same of a client; its servers, and how one is chosen |
//! | [`connection`] | how connections are opened, as far as no socket is needed for it |
//! | [`error`], [`event`], [`failure`], [`held`] | what users are told |
//! | [`log`] | the specification's log messages, and those of monitors, through `tracing` |
//! | [`dial`] | in which order addresses are tried, and how sockets are set up |
//! | [`outbox`] | what is decided under a lock and done, or told, outside of it |
//! | [`platform`] | what a connection needs to know of the process and of the operating system |
//! | [`transport_error`] | why there was no reply |
//! | [`trace`] | recordings, the flight recorder and its dumps |
//! | [`warm_up`] | how connections are made before they are needed |
//! | [`watch`] | one server that is watched, and who is told of it |
//! | [`woken`] | who is to be woken when the lock is given back |
//! | `metrics`, with the feature of that name | what OpenTelemetry is told of a pool |
//! | `tls`, with the feature of that name | TLS as a connection string asks for it |

#![warn(missing_debug_implementations)]

pub mod builder;
pub mod client;
pub mod connection;
pub mod dial;
pub mod error;
pub mod event;
pub mod failure;
pub mod leak;
pub mod log;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod monitor;
pub mod outbox;
pub mod platform;
#[cfg(feature = "tls")]
pub mod tls;
pub mod trace;
pub mod transport_error;
pub mod wake_list;
pub mod warm_up;

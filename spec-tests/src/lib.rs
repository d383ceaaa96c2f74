//! The command `cenote`: what operators and authors of drivers use, and what its tests share.

#![forbid(unsafe_code)]

pub mod blocking;
pub mod command;
pub mod conversation;
#[cfg(feature = "conform")]
pub mod formats;
pub mod proxy;
pub mod sockets;
pub mod workload;

pub use cenote_check::{self as check, event_json};

/// The README's examples, compiled and run as documentation tests. Here, because they are about
/// several packages.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

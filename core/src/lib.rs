#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/start/embed.md)"))]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Tests have `std` in any case.
#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

extern crate alloc;

pub mod address;
pub mod outbox;
pub mod pool;
mod printable;

#[cfg(feature = "protocol")]
pub mod client;
#[cfg(feature = "protocol")]
pub mod connect;
#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "std")]
pub mod log;
#[cfg(feature = "protocol")]
pub mod monitor;
#[cfg(feature = "protocol")]
mod number;
#[cfg(feature = "std")]
mod one_line;
#[cfg(feature = "std")]
pub mod sdam;
#[cfg(feature = "std")]
mod std_time;
#[cfg(feature = "protocol")]
pub mod topology;
#[cfg(feature = "std")]
pub mod trace;
#[cfg(feature = "std")]
pub mod uri;
#[cfg(feature = "protocol")]
pub mod wire;

// What appears in this crate's API.
#[cfg(feature = "protocol")]
pub use bson;
pub use smallvec;

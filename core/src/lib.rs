#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/start/embed.md)"))]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

extern crate alloc;

pub mod address;
pub mod pool;
mod printable;

#[cfg(feature = "std")]
pub mod client;
#[cfg(feature = "std")]
pub mod connect;
#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "std")]
pub mod log;
#[cfg(feature = "std")]
pub mod monitor;
#[cfg(feature = "std")]
mod number;
#[cfg(feature = "std")]
mod one_line;
#[cfg(feature = "std")]
pub mod sdam;
#[cfg(feature = "std")]
pub mod trace;
#[cfg(feature = "std")]
pub mod uri;
#[cfg(feature = "std")]
pub mod wire;

// What appears in this crate's API.
#[cfg(feature = "std")]
pub use bson;
pub use smallvec;

//! The bodies of the fuzz targets, as ordinary functions that are compiled by every build.

#[cfg(feature = "simulation")]
mod connect;
mod pool;
#[cfg(feature = "simulation")]
mod trace;
#[cfg(feature = "simulation")]
mod uri;
#[cfg(feature = "simulation")]
mod wire;

#[cfg(feature = "simulation")]
pub use connect::{hello_reply, scram, socks5};
pub(crate) use pool::{Run, decode_run, without_late_replies};
pub use pool::{pool_ops, pool_vs_model};
#[cfg(feature = "simulation")]
pub use trace::trace;
#[cfg(feature = "simulation")]
pub use uri::uri;
#[cfg(feature = "simulation")]
pub use wire::wire;

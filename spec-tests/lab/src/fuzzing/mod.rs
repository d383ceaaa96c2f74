//! The bodies of the fuzz targets, as ordinary functions that are compiled by every build.

mod connect;
mod pool;
mod trace;
mod uri;
mod wire;

pub use connect::{hello_reply, scram, socks5};
pub use pool::{Run, decode, pool_vs_model};
pub(crate) use pool::{decode_run, without_late_replies};
pub use trace::trace;
pub use uri::uri;
pub use wire::wire;

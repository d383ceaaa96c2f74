//! A client of several servers: what its builder is told, and what it keeps of each server.
//!
//! Which server is meant, the [core](cenote_core::client) decides; how somebody waits for one, and
//! blocks or does not, is the shell's.

mod builder;
mod error;
mod plan;
mod server;
mod servers;
mod traces;

pub use self::builder::{BuiltClient, ClientBuilder};
pub use self::error::ClientBuildError;
pub use self::plan::ClientPlan;
pub use self::server::{ClientPool, Server, Watching, failed};
pub use self::servers::Servers;

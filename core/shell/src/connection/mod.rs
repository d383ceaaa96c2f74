//! Connections: what a pool needs of a [`Connector`], and the connector for MongoDB servers.

mod connector;
pub mod dial;
pub mod interrupt;
mod interruptible;
#[cfg(feature = "tls")]
mod mongo;
pub mod operation;
pub mod shortage;
pub(crate) mod stages;
pub mod transport_error;

pub use self::connector::{Connector, DrainReporter, HandshakeReporter, IdleProbe, Target};
pub use self::interruptible::Interruptible;
#[cfg(feature = "tls")]
pub use self::mongo::{
    ByteLayer, Connection, ConnectionParts, Greeting, MongoConnector, Monitoring, OpenedConnection,
    RawStream, Reauthentication, Reply, Transport, judge_within, not_authenticated,
    require_unacknowledged, still_required,
};
#[cfg(feature = "tls")]
pub use crate::runtime::lookup::Lookup;

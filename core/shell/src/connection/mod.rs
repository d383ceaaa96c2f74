//! Connections: what a pool needs of a [`Connector`], and the connector for MongoDB servers.

mod connector;
mod interruptible;
#[cfg(feature = "tls")]
mod mongo;

pub use self::connector::{Connector, DrainReporter, HandshakeReporter, Target};
pub use self::interruptible::Interruptible;
#[cfg(feature = "tls")]
pub use self::mongo::{
    ByteLayer, Connection, ConnectionParts, Greeting, Lookup, MongoConnector, Monitoring,
    OpenedConnection, RawStream, Reauthentication, Transport, judge_within, not_authenticated,
    require_unacknowledged, still_required,
};

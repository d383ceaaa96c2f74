use core::fmt;
use std::sync::Arc;

use bson::RawDocument;
use thiserror::Error;

use super::Membership;
use crate::address::ServerAddress;
use crate::error::{ConnectionError, OneLine, Stage};
use crate::pool::ServiceId;
use crate::sdam::TopologyVersion;
use crate::uri::{Compressor, Mechanism};

/// The server at the other end of a connection, from its reply to hello.
// HS-11
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionDescription {
    /// The type of the server.
    pub kind: ServerKind,
    /// `helloOk`: whether monitors may use `hello` instead of its old name.
    pub hello_ok: bool,
    /// `minWireVersion`; 0 when the server does not say.
    ///
    /// Checked by [`check_wire_versions`](Self::check_wire_versions).
    pub min_wire_version: i32,
    /// `maxWireVersion`; 0 when the server does not say.
    pub max_wire_version: i32,
    /// How much the server takes at once.
    pub limits: Limits,
    /// `setName`: the replica set that the server belongs to.
    pub set_name: Option<String>,
    /// `logicalSessionTimeoutMinutes`: how long sessions last; `None` when there are none.
    pub session_timeout_minutes: Option<i64>,
    /// What the server says of its replica set; on the connections of a monitor, if it is a member of one.
    pub membership: Option<Arc<Membership>>,
    /// `lastWrite.lastWriteDate`: when the server last wrote, by its own clock, in milliseconds since 1970; on the
    /// connections of a monitor.
    pub last_write_ms: Option<i64>,
    /// `connectionId`: how the server's log calls this connection.
    // CO-21
    pub connection_id: Option<i64>,
    /// `serviceId`: the service behind the load balancer; always there with `loadBalanced`, and
    /// never without.
    pub service_id: Option<ServiceId>,
    /// `topologyVersion`: how much the server knew of its own state.
    pub topology_version: Option<TopologyVersion>,
    /// The agreed compressor; `None` is no compression.
    // CO-21
    pub compressor: Option<Compressor>,
    /// How the connection was authenticated; `None` until then, and if it never is.
    pub mechanism: Option<Mechanism>,
    pub(crate) reply: Option<Arc<[u8]>>,
}

impl ConnectionDescription {
    /// The oldest wire version that this crate supports: that of MongoDB 4.4.
    pub const MIN_WIRE_VERSION: i32 = 9;
    /// The newest wire version that this crate supports: that of MongoDB 9.0. Newer servers support
    /// it, too.
    pub const MAX_WIRE_VERSION: i32 = 29;

    /// The whole reply, on the connections of a monitor.
    #[must_use]
    pub fn reply(&self) -> Option<&RawDocument> {
        RawDocument::from_bytes(self.reply.as_deref()?).ok()
    }

    /// Checks whether the server at this address supports one of the wire versions of this crate,
    /// as [SDAM](https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-discovery-and-monitoring.md#checking-wire-protocol-compatibility)
    /// asks. A shell closes a connection that fails the check.
    ///
    /// # Errors
    ///
    /// A configuration error at [`Stage::Hello`], in SDAM's words.
    pub fn check_wire_versions(&self, address: &ServerAddress) -> Result<(), ConnectionError> {
        let (min, max) = (self.min_wire_version, self.max_wire_version);
        let incompatible = if min > Self::MAX_WIRE_VERSION {
            IncompatibleServer::TooNew { address: address.clone(), min_wire_version: min }
        } else if max < Self::MIN_WIRE_VERSION {
            IncompatibleServer::TooOld { address: address.clone(), max_wire_version: max }
        } else {
            return Ok(());
        };
        let error = ConnectionError::configuration(Stage::Hello, &incompatible.to_string());
        Err(error.with_source(incompatible))
    }
}

/// A server that speaks none of the wire versions of this crate: the [cause](ConnectionError::source_as) of the error
/// of [`ConnectionDescription::check_wire_versions`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IncompatibleServer {
    /// All that it speaks are newer.
    #[error(
        "Server at {address} requires wire version {min_wire_version}, but this version of Cenote only supports up to \
         {max}.",
        max = ConnectionDescription::MAX_WIRE_VERSION
    )]
    TooNew {
        /// The server.
        address: ServerAddress,
        /// `minWireVersion`, as it reports.
        min_wire_version: i32,
    },
    /// All that it speaks are older.
    #[error(
        "Server at {address} reports wire version {max_wire_version}, but this version of Cenote requires at least {min} \
         (MongoDB 4.4).",
        min = ConnectionDescription::MIN_WIRE_VERSION
    )]
    TooOld {
        /// The server.
        address: ServerAddress,
        /// `maxWireVersion`, as it reports.
        max_wire_version: i32,
    },
}

/// The set's name is cut.
impl fmt::Debug for ConnectionDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            hello_ok,
            min_wire_version,
            max_wire_version,
            limits,
            set_name,
            session_timeout_minutes,
            membership,
            last_write_ms,
            connection_id,
            service_id,
            topology_version,
            compressor,
            mechanism,
            reply: _,
        } = self;
        f.debug_struct("ConnectionDescription")
            .field("kind", kind)
            .field("hello_ok", hello_ok)
            .field("min_wire_version", min_wire_version)
            .field("max_wire_version", max_wire_version)
            .field("limits", limits)
            .field("set_name", &set_name.as_deref().map(OneLine::name))
            .field("session_timeout_minutes", session_timeout_minutes)
            .field("membership", membership)
            .field("last_write_ms", last_write_ms)
            .field("connection_id", connection_id)
            .field("service_id", service_id)
            .field("topology_version", topology_version)
            .field("compressor", compressor)
            .field("mechanism", mechanism)
            .finish_non_exhaustive()
    }
}

/// The type of a server in Server Discovery and Monitoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ServerKind {
    /// A server of its own.
    Standalone,
    /// A router of a sharded cluster.
    Mongos,
    /// The primary of a replica set.
    RsPrimary,
    /// A secondary.
    RsSecondary,
    /// An arbiter. It has no users, so connections to it do not authenticate.
    RsArbiter,
    /// Another member: hidden, starting, recovering.
    RsOther,
    /// A member that has no configuration yet.
    RsGhost,
    /// Any server behind a load balancer.
    LoadBalancer,
}

impl ServerKind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Standalone,
        Self::Mongos,
        Self::RsPrimary,
        Self::RsSecondary,
        Self::RsArbiter,
        Self::RsOther,
        Self::RsGhost,
        Self::LoadBalancer,
    ];

    /// As the specifications write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standalone => "Standalone",
            Self::Mongos => "Mongos",
            Self::RsPrimary => "RSPrimary",
            Self::RsSecondary => "RSSecondary",
            Self::RsArbiter => "RSArbiter",
            Self::RsOther => "RSOther",
            Self::RsGhost => "RSGhost",
            Self::LoadBalancer => "LoadBalancer",
        }
    }

    /// Whether it serves data.
    #[must_use]
    pub const fn is_data_bearing(self) -> bool {
        match self {
            Self::Standalone
            | Self::Mongos
            | Self::RsPrimary
            | Self::RsSecondary
            | Self::LoadBalancer => true,
            Self::RsArbiter | Self::RsOther | Self::RsGhost => false,
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much a server takes at once.
// CO-20
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `maxBsonObjectSize`: the longest document to be stored, in bytes; default 16 MiB.
    pub max_bson_object_size: u32,
    /// `maxMessageSizeBytes`: the longest message, in bytes; default 48,000,000.
    pub max_message_size: u32,
    /// `maxWriteBatchSize`: the most writes in one command; default 100,000.
    pub max_write_batch_size: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bson_object_size: 16 * 1024 * 1024,
            max_message_size: 48_000_000,
            max_write_batch_size: 100_000,
        }
    }
}

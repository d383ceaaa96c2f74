//! The description of a server.

use core::fmt;
use std::sync::Arc;

use super::RoundTrip;
use crate::connect::{ConnectionDescription, ServerKind};
use crate::error::{ConnectionError, OneLine};
use crate::pool::Instant;
use crate::sdam::TopologyVersion;

/// The description of a server: its last reply, or why it is Unknown.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerDescription {
    /// The reply of the server; `None` while it is Unknown.
    pub hello: Option<Arc<ConnectionDescription>>,
    /// Why it is Unknown; `None` also before the first check has ended.
    pub error: Option<ConnectionError>,
    /// The version of its state; older replies are ignored. An Unknown server has one when the
    /// server itself reported a change.
    pub topology_version: Option<TopologyVersion>,
    /// How long it takes to answer, by the time of the last check.
    pub round_trip: Option<RoundTrip>,
    /// When that became known; `None` before the first check has ended.
    pub updated: Option<Instant>,
}

impl ServerDescription {
    /// Its type; `None` is Unknown.
    #[must_use]
    pub fn kind(&self) -> Option<ServerKind> {
        self.hello.as_ref().map(|hello| hello.kind)
    }

    /// `setName`: the replica set that it reports.
    #[must_use]
    pub fn set_name(&self) -> Option<&str> {
        self.hello.as_ref()?.set_name.as_deref()
    }

    /// Whether it is of any kind but Unknown.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.hello.is_some()
    }

    /// Whether it serves data: its pool is ready then.
    #[must_use]
    pub fn is_data_bearing(&self) -> bool {
        self.kind().is_some_and(ServerKind::is_data_bearing)
    }

    /// As one that is Unknown, for this reason.
    pub(super) fn unknown(
        error: ConnectionError,
        topology_version: Option<TopologyVersion>,
        now: Instant,
    ) -> Self {
        Self { error: Some(error), topology_version, updated: Some(now), ..Self::default() }
    }

    /// Whether both say the same of the server; times do not count, nor which connection it was.
    pub(super) fn says_the_same_as(&self, other: &Self) -> bool {
        let said = |description: &Self| {
            description.hello.as_deref().map(|hello| ConnectionDescription {
                connection_id: None,
                reply: None,
                ..hello.clone()
            })
        };
        let why = |description: &Self| description.error.as_ref().map(ToString::to_string);
        self.topology_version == other.topology_version
            && why(self) == why(other)
            && said(self) == said(other)
    }
}

/// As in `RSPrimary of rs0` or `Unknown: tcp: connection refused`.
impl fmt::Display for ServerDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind(), self.set_name(), &self.error) {
            (Some(kind), Some(set), _) => write!(f, "{kind} of {}", OneLine::name(set)),
            (Some(kind), None, _) => kind.fmt(f),
            (None, _, Some(error)) => write!(f, "Unknown: {error}"),
            (None, _, None) => f.write_str("Unknown: not checked yet"),
        }
    }
}

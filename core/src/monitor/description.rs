//! The description of a server.

use core::fmt;
use std::sync::Arc;

use super::RoundTrip;
use crate::connect::{ConnectionDescription, Membership, ServerKind};
use crate::error::{ConnectionError, OneLine, Stage, rounded};
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
    /// Whether it is a load balancer, which is not monitored and so has no reply.
    pub is_load_balancer: bool,
}

impl ServerDescription {
    /// As a check found it.
    #[must_use]
    pub fn known(
        hello: Arc<ConnectionDescription>,
        round_trip: Option<RoundTrip>,
        now: Instant,
    ) -> Self {
        let topology_version = hello.topology_version;
        Self {
            hello: Some(hello),
            topology_version,
            round_trip,
            updated: Some(now),
            ..Self::default()
        }
    }

    /// As one that is Unknown, for this reason. The version is that of a
    /// [verdict](crate::sdam::ServerVerdict); after a check has failed there is none.
    #[must_use]
    pub fn unknown(
        error: ConnectionError,
        topology_version: Option<TopologyVersion>,
        now: Instant,
    ) -> Self {
        Self { error: Some(error), topology_version, updated: Some(now), ..Self::default() }
    }

    /// A load balancer.
    #[must_use]
    pub fn load_balancer() -> Self {
        Self { is_load_balancer: true, ..Self::default() }
    }

    /// Its type; `None` is Unknown.
    #[must_use]
    pub fn kind(&self) -> Option<ServerKind> {
        if self.is_load_balancer {
            return Some(ServerKind::LoadBalancer);
        }
        self.hello.as_ref().map(|hello| hello.kind)
    }

    /// What it says of its replica set.
    #[must_use]
    pub fn membership(&self) -> Option<&Membership> {
        self.hello.as_ref()?.membership.as_deref()
    }

    /// `setName`: the replica set that it reports.
    #[must_use]
    pub fn set_name(&self) -> Option<&str> {
        self.hello.as_ref()?.set_name.as_deref()
    }

    /// Whether it is of any kind but Unknown.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.hello.is_some() || self.is_load_balancer
    }

    /// Whether it serves data: its pool is ready then.
    #[must_use]
    pub fn is_data_bearing(&self) -> bool {
        self.kind().is_some_and(ServerKind::is_data_bearing)
    }

    /// With its round trip and its tags, which `Display` leaves out: as in
    /// `RSPrimary of rs0, round trip 1.2ms, tags dc: ny`.
    #[must_use]
    pub const fn details(&self) -> impl fmt::Display {
        Details(self)
    }

    /// Why it cannot be a server of the replica set of this name; `None` also while it is Unknown.
    pub(crate) fn wrong_set(&self, wanted: &str) -> Option<ConnectionError> {
        self.hello.as_deref().and_then(|hello| wrong_set(hello, wanted))
    }

    /// The same server as one that is Unknown, because what it says is not accepted.
    pub(crate) fn refused(&self, error: ConnectionError) -> Self {
        Self { error: Some(error), updated: self.updated, ..Self::default() }
    }

    /// Whether both say the same of the server; times do not count, nor which connection it was.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        let said = |description: &Self| {
            description.hello.as_deref().map(|hello| ConnectionDescription {
                connection_id: None,
                last_write_ms: None,
                reply: None,
                ..hello.clone()
            })
        };
        let why = |description: &Self| description.error.as_ref().map(ToString::to_string);
        self.topology_version == other.topology_version
            && self.is_load_balancer == other.is_load_balancer
            && why(self) == why(other)
            && said(self) == said(other)
    }
}

/// Why a server that answers so does not belong to the replica set of this name.
pub(super) fn wrong_set(hello: &ConnectionDescription, wanted: &str) -> Option<ConnectionError> {
    if hello.set_name.as_deref() == Some(wanted) {
        return None;
    }
    let belongs = match &hello.set_name {
        Some(set) => format!("belongs to the replica set `{}`", OneLine::name(set)),
        None if hello.kind == ServerKind::RsGhost => "belongs to no replica set yet".to_owned(),
        None => "belongs to no replica set".to_owned(),
    };
    let wanted = OneLine::name(wanted);
    let reason = format!("the server {belongs}, not to `{wanted}`: correct the host or replicaSet");
    Some(ConnectionError::configuration(Stage::Hello, &reason))
}

struct Details<'a>(&'a ServerDescription);

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(description) = self;
        write!(f, "{description}")?;
        if let Some(round_trip) = description.round_trip {
            write!(f, ", round trip {:?}", rounded(round_trip.average))?;
        }
        let tags = description.membership().map(|said| &said.tags);
        let mut separator = ", tags ";
        for (name, value) in tags.into_iter().flatten() {
            write!(f, "{separator}{}: {}", OneLine::name(name), OneLine::name(value))?;
            separator = ", ";
        }
        Ok(())
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

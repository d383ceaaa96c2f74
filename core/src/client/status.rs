use core::fmt;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::error::ConnectionError;
use crate::monitor::ServerDescription;
use crate::pool::Snapshot;

/// One server of a client as it was at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// As the connection string has it.
    pub address: Arc<ServerAddress>,
    /// Its last known type; `None` is Unknown. A load balancer is always one.
    pub kind: Option<ServerKind>,
    /// Its last reply, or why it is Unknown. Empty for a load balancer, which has no monitor.
    pub description: Arc<ServerDescription>,
    /// The state and the counts of its pool.
    pub pool: Snapshot,
}

impl ServerStatus {
    /// `description` is the monitor's; `None` for a load balancer, which has none.
    #[must_use]
    pub fn new(
        address: Arc<ServerAddress>,
        description: Option<Arc<ServerDescription>>,
        pool: Snapshot,
    ) -> Self {
        let kind = match &description {
            Some(description) => description.kind(),
            None => Some(ServerKind::LoadBalancer),
        };
        Self { address, kind, description: description.unwrap_or_default(), pool }
    }
}

/// All servers in one line, with advice for those that do not work.
#[must_use]
pub fn seen(servers: impl IntoIterator<Item = ServerStatus>) -> String {
    let seen: Vec<_> = servers.into_iter().map(|server| Seen(&server).to_string()).collect();
    seen.join("; ")
}

/// Without the pool.
struct Seen<'a>(&'a ServerStatus);

/// As in `db.example.com:27017: RSPrimary of rs0`, or
/// `db.example.com:27017: Unknown: TCP connect: … (check host and port, …)`.
impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerStatus { address, kind, description, .. } = self.0;
        match kind {
            Some(kind @ ServerKind::LoadBalancer) => write!(f, "{address}: {kind}")?,
            Some(_) | None => write!(f, "{address}: {description}")?,
        }
        match description.error.as_ref().and_then(ConnectionError::advice) {
            Some(advice) => write!(f, " ({advice})"),
            None => Ok(()),
        }
    }
}

/// As in `db.example.com:27017: RSPrimary of rs0 [ready  gen 0 | …]`; where the server does not
/// work, with what may be done about it.
impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", Seen(self), self.pool)
    }
}

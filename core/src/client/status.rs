use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::error::{ConnectionError, Stage, rounded};
use crate::monitor::ServerDescription;
use crate::pool::Snapshot;
use crate::topology::TopologyDescription;

/// One server of a client as it was at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// As the connection string has it, or as the member of a replica set that named it.
    pub address: Arc<ServerAddress>,
    /// Its last known type; `None` is Unknown. A load balancer is always one.
    pub kind: Option<ServerKind>,
    /// Its last reply, or why it is Unknown. Empty for a load balancer, which has no monitor.
    pub description: Arc<ServerDescription>,
    /// The state and the counts of its pool.
    pub pool: Snapshot,
}

impl ServerStatus {
    /// `description` is the topology's.
    #[must_use]
    pub fn new(
        address: Arc<ServerAddress>,
        description: Arc<ServerDescription>,
        pool: Snapshot,
    ) -> Self {
        Self { address, kind: description.kind(), description, pool }
    }
}

/// Whether a client can be used, as far as is known at one moment: for a program that checks its configuration when it
/// starts.
///
/// Operations wait for a server for the whole of `serverSelectionTimeoutMS`, since nearly every trouble may pass. Such a
/// program can end long before that, with the reason:
///
/// ```
/// use cenote_core::client::ClientStatus;
///
/// fn check(status: &ClientStatus) -> Result<(), String> {
///     if status.is_misconfigured() { Err(status.to_string()) } else { Ok(()) }
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientStatus {
    /// None can be used yet, and some have neither answered nor failed, or answer and hold no data, such as an arbiter.
    Looking,
    /// A server can be used. Behind a load balancer, which nothing monitors, it is not known, and always said.
    Usable,
    /// Each server has failed, or is not used.
    Unusable {
        /// The servers and hosts of the connection string, each with the reason: one at least.
        servers: Vec<(Arc<ServerAddress>, ConnectionError)>,
    },
}

impl ClientStatus {
    /// That of a client with this topology.
    #[must_use]
    pub fn of(topology: &TopologyDescription) -> Self {
        let mut servers = topology.servers();
        if servers.clone().any(|(address, _)| topology.is_usable(address)) {
            return Self::Usable;
        }
        // One that answers and holds no data, such as an arbiter, has failed in nothing.
        let failed = servers.try_fold(Vec::new(), |mut failed, (address, server)| {
            failed.push((Arc::clone(address), server.error.clone()?));
            Some(failed)
        });
        let excluded =
            topology.excluded().map(|(address, error)| (Arc::clone(address), error.clone()));
        match failed {
            Some(failed) if !failed.is_empty() || excluded.len() > 0 => {
                Self::Unusable { servers: failed.into_iter().chain(excluded).collect() }
            }
            Some(_) | None => Self::Looking,
        }
    }

    /// Whether each server fails by something that seldom passes by itself: client and server
    /// [refuse](ConnectionError::is_refusal) each other, or its name has no address, as far as the resolver says. One that is
    /// not ready itself may say so, too: look for as long as that may take.
    #[must_use]
    pub fn is_misconfigured(&self) -> bool {
        let is_lasting = |error: &ConnectionError| error.is_refusal() || has_no_address(error);
        match self {
            Self::Unusable { servers } => servers.iter().all(|(_, error)| is_lasting(error)),
            Self::Looking | Self::Usable => false,
        }
    }
}

/// As in `db.example.com:27017 cannot be used: name resolution: … (check the host name)`.
impl fmt::Display for ClientStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = match self {
            Self::Looking => return f.write_str("no server has been found yet"),
            Self::Usable => return f.write_str("a server can be used"),
            Self::Unusable { servers } => servers,
        };
        let mut separator = "";
        for (address, error) in servers.iter().take(TOLD) {
            write!(f, "{separator}{address} cannot be used: {}", error.with_advice())?;
            separator = "; ";
        }
        match servers.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "{separator}and {more} more"),
        }
    }
}

fn has_no_address(error: &ConnectionError) -> bool {
    error.stage() == Stage::Dns && !error.is_timeout() && !error.is_local()
}

/// How many servers a status names.
const TOLD: usize = 3;

/// A topology and its servers in one line, with advice for those that do not work.
#[must_use]
pub fn seen(
    topology: &TopologyDescription,
    servers: impl IntoIterator<Item = ServerStatus>,
) -> String {
    let servers =
        servers.into_iter().map(|it| Seen(&it.address, &it.description, None).to_string());
    written(topology, servers)
}

/// The same for all servers of the topology, with how long the monitor of each has been connecting.
pub(crate) fn all_seen(
    topology: &TopologyDescription,
    connecting: impl Fn(&ServerAddress) -> Option<Duration>,
) -> String {
    let seen = |address, server| Seen(address, server, connecting(address)).to_string();
    written(topology, topology.servers().map(|(address, server)| seen(address, server)))
}

fn written(topology: &TopologyDescription, servers: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    // Writing into memory does not fail.
    let _ = topology.write_with(&mut text, servers);
    text
}

/// Without the pool, and with how long an attempt to connect to it has had no answer.
struct Seen<'a>(&'a ServerAddress, &'a ServerDescription, Option<Duration>);

/// As in `db.example.com:27017: RSPrimary of rs0, round trip 1.2ms, tags dc: ny`, or
/// `db.example.com:27017: Unknown: connect: … (check host and port, …), connecting for 1.5s without an answer`.
impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(address, description, connecting) = self;
        write!(f, "{address}: {}", description.details())?;
        if let Some(advice) = description.error.as_ref().and_then(ConnectionError::advice) {
            write!(f, " ({advice})")?;
        }
        match connecting {
            Some(time) => write!(f, ", connecting for {:?} without an answer", rounded(*time)),
            None => Ok(()),
        }
    }
}

/// As in `db.example.com:27017: RSPrimary of rs0, round trip 1.2ms [ready  gen 0 | …]`; where the server does not
/// work, with what may be done about it.
impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", Seen(&self.address, &self.description, None), self.pool)
    }
}

use core::time::Duration;

use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::pool::Instant;
use crate::topology;
use crate::uri::ConnectionString;
use crate::uri::srv::{LookupError, SrvError, SrvOptions, SrvRecord, choose, distinct, lowest_ttl};

/// When to look the SRV records of a `mongodb+srv://` connection string up again, and what to change then: a machine
/// without I/O, by the rules of
/// [Polling SRV Records for mongos Discovery](https://github.com/mongodb/specifications/blob/master/source/polling-srv-records-for-mongos-discovery/polling-srv-records-for-mongos-discovery.md).
///
/// The routers of a sharded cluster are followed, and nothing else: members of a replica set find each other, and a
/// load balancer stays.
///
/// ```
/// use std::time::Duration;
///
/// use cenote_core::client::SrvPolling;
/// use cenote_core::pool::Instant;
/// use cenote_core::topology;
/// use cenote_core::uri::ConnectionString;
/// use cenote_core::uri::srv::{SrvAnswers, SrvRecord};
///
/// let record = |port| SrvRecord::new("a.example.com", port).with_ttl(Duration::from_secs(90));
/// let answers = SrvAnswers { srv: Ok(vec![record(1), record(2)]), txt: Ok(Vec::new()) };
/// let uri = ConnectionString::parse("mongodb+srv://shop.example.com")?.resolve(&answers, || 0)?;
/// let begin = Instant::ORIGIN;
/// let polling = SrvPolling::new(begin, &uri, answers.ttl(), SrvPolling::SHORTEST_INTERVAL);
/// let mut polling = polling.expect("its routers are followed");
///
/// let due = begin + Duration::from_secs(90);
/// assert_eq!(polling.next_rescan(), Some(due));
/// let changes = polling.rescan(due, &uri.hosts, &Ok(vec![record(2), record(3)]), || 0);
/// assert_eq!(changes.removed[0].to_string(), "a.example.com:1");
/// assert_eq!(changes.added[0].to_string(), "a.example.com:3");
/// let input = changes.into_input(uri.hosts.clone());
/// assert!(matches!(input, Some(topology::Input::Hosts { hosts }) if hosts.len() == 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SrvPolling {
    srv: SrvOptions,
    shortest_interval: Duration,
    heartbeat_frequency: Duration,
    /// How many servers the client has.
    servers: usize,
    /// `None` when the servers are no routers.
    next: Option<Instant>,
}

/// What a look at the SRV records changes. Servers that are in neither list stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SrvChanges {
    /// Servers to add, whose state is Unknown.
    pub added: Vec<ServerAddress>,
    /// Servers to remove.
    pub removed: Vec<ServerAddress>,
    /// Records that were ignored, or why nothing changes: to be logged, and no error.
    pub problems: Vec<SrvError>,
}

impl SrvChanges {
    /// What the [topology] has to be told, if anything changes. `servers` are those that
    /// [`rescan`](SrvPolling::rescan) was given: they keep their order.
    #[must_use]
    pub fn into_input(self, mut servers: Vec<ServerAddress>) -> Option<topology::Input> {
        if self.added.is_empty() && self.removed.is_empty() {
            return None;
        }
        servers.retain(|server| !self.removed.contains(server));
        servers.extend(self.added);
        Some(topology::Input::Hosts { hosts: servers })
    }
}

impl SrvPolling {
    /// The shortest time between two looks, however short the TTL of the records is.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(60);

    /// `heartbeatFrequencyMS` where the connection string has none.
    const HEARTBEAT_FREQUENCY: Duration = Duration::from_secs(10);

    /// Begins at the end of the first look-up, whose records have this [TTL](crate::uri::srv::SrvAnswers::ttl).
    /// `None` if the records are not looked up again: the resolved connection string is none of `mongodb+srv://`,
    /// names a replica set, or leads to a load balancer.
    ///
    /// `shortest_interval` is [`SHORTEST_INTERVAL`](Self::SHORTEST_INTERVAL), as the specification asks; less is for
    /// tests with a name server of their own.
    // SV-10
    #[must_use]
    pub fn new(
        now: Instant,
        uri: &ConnectionString,
        ttl: Duration,
        shortest_interval: Duration,
    ) -> Option<Self> {
        let topology = &uri.topology;
        if topology.load_balanced == Some(true) || topology.replica_set.is_some() {
            return None;
        }
        let heartbeat_frequency = uri.monitoring.heartbeat_frequency;
        let mut polling = Self {
            srv: uri.srv.clone()?,
            shortest_interval,
            heartbeat_frequency: heartbeat_frequency.unwrap_or(Self::HEARTBEAT_FREQUENCY),
            servers: uri.hosts.len(),
            next: None,
        };
        polling.next = Some(now + polling.interval(ttl));
        Some(polling)
    }

    /// The name whose SRV records to look up.
    #[must_use]
    pub fn srv_name(&self) -> String {
        self.srv.srv_name()
    }

    /// When to look the records up again; `None` is never.
    #[must_use]
    pub const fn next_rescan(&self) -> Option<Instant> {
        self.next
    }

    /// A server of the client has been found to be of this kind. One that is no router ends the polling.
    // SV-10
    pub fn observe(&mut self, kind: ServerKind) {
        let is_polled = match kind {
            ServerKind::Mongos | ServerKind::RsGhost => true,
            // One of several seeds is not of their cluster.
            ServerKind::Standalone => self.servers > 1,
            ServerKind::RsPrimary
            | ServerKind::RsSecondary
            | ServerKind::RsArbiter
            | ServerKind::RsOther
            | ServerKind::LoadBalancer => false,
        };
        if !is_polled {
            self.next = None;
        }
    }

    /// What an answer, which came now, changes in the present servers. `random` gives random numbers, for `srvMaxHosts`.
    // SV-12, SV-15
    pub fn rescan(
        &mut self,
        now: Instant,
        servers: &[ServerAddress],
        records: &Result<Vec<SrvRecord>, LookupError>,
        random: impl FnMut() -> u64,
    ) -> SrvChanges {
        let mut changes = SrvChanges::default();
        if self.next.is_none() {
            return changes; // The servers were found to be no routers while the answer was under way.
        }
        let found = match self.srv.records(records) {
            Ok(records) => self.verified(records, &mut changes.problems),
            Err(error) => {
                changes.problems.push(error);
                Vec::new()
            }
        };
        if found.is_empty() {
            self.next = Some(now + self.heartbeat_frequency);
            return changes;
        }
        self.next = Some(now + self.interval(lowest_ttl(records)));
        let (present, mut added): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|server| servers.contains(server));
        choose(&mut added, self.srv.limit().saturating_sub(present.len()), random);
        changes.removed =
            servers.iter().filter(|server| !present.contains(server)).cloned().collect();
        changes.added = added;
        self.servers = servers.len() + changes.added.len() - changes.removed.len();
        changes
    }

    /// The log is told of some of them: every record may be wrong.
    // SV-14
    fn verified(&self, records: &[SrvRecord], problems: &mut Vec<SrvError>) -> Vec<ServerAddress> {
        let mut tell = |error| {
            if problems.len() < PROBLEMS_MAX {
                problems.push(error);
            }
        };
        let verify = |record| self.srv.server(record).map_err(&mut tell).ok();
        distinct(records.iter().filter_map(verify).collect())
    }

    // SV-11
    fn interval(&self, ttl: Duration) -> Duration {
        ttl.max(self.shortest_interval)
    }
}

/// Of one answer.
const PROBLEMS_MAX: usize = 10;

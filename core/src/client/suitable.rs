use core::time::Duration;
use std::sync::Arc;

use super::{InvalidReadPreference, ReadPreference};
use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::monitor::ServerDescription;
use crate::topology::{TopologyDescription, TopologyKind};
use crate::uri::ReadPreferenceMode;

/// A server of a topology, during server selection.
pub type Described<'a> = (&'a Arc<ServerAddress>, &'a Arc<ServerDescription>);

/// The servers that an operation with this read preference can go to, whatever their round-trip times. Writes have
/// [`ReadPreference::PRIMARY`].
///
/// Deprioritized servers, such as one where the operation has just failed, are among them only if there is no other.
///
/// # Errors
///
/// The topology is a replica set, and the read preference cannot be followed.
// SS-16
pub fn suitable<'a>(
    topology: &'a TopologyDescription,
    preference: &ReadPreference,
    heartbeat_frequency: Duration,
    deprioritized: &[ServerAddress],
) -> Result<Vec<Described<'a>>, InvalidReadPreference> {
    if topology.kind.is_replica_set() {
        preference.validate(heartbeat_frequency)?;
    }
    let selection = Selection { topology, preference, heartbeat_frequency };
    let first = selection.among(|address| !deprioritized.contains(address));
    if first.is_empty() && !deprioritized.is_empty() {
        return Ok(selection.among(|_| true));
    }
    Ok(first)
}

impl TopologyDescription {
    /// Whether a read with this read preference would find a server now. Behind a load balancer it does.
    // SE-12
    #[must_use]
    pub fn has_readable_server(
        &self,
        preference: &ReadPreference,
        heartbeat_frequency: Duration,
    ) -> bool {
        let servers = suitable(self, preference, heartbeat_frequency, &[]);
        self.kind == TopologyKind::LoadBalanced || servers.is_ok_and(|them| !them.is_empty())
    }

    /// Whether a write would find a server now. Behind a load balancer it does.
    // SE-12
    #[must_use]
    pub fn has_writable_server(&self) -> bool {
        self.has_readable_server(&ReadPreference::PRIMARY, Duration::ZERO)
    }
}

/// Those of the suitable servers whose average round-trip time is that of the fastest, or longer by `local_threshold`
/// (`localThresholdMS`) at most.
// SS-07
#[must_use]
pub fn in_latency_window<'a>(
    suitable: &[Described<'a>],
    local_threshold: Duration,
) -> Vec<Described<'a>> {
    let fastest = suitable.iter().map(average).min().unwrap_or_default();
    let limit = fastest.saturating_add(local_threshold);
    suitable.iter().filter(|server| average(server) <= limit).copied().collect()
}

/// The better of two servers that are drawn by chance: the one with fewer operations in progress. With one draw of
/// the whole range of `u64` from a generator of the embedder.
// SD-53, SS-08
pub fn choose_of_two<T>(servers: &[T], draw: u64, operations: impl Fn(&T) -> u64) -> Option<&T> {
    let [first, second] = two_of(servers, draw)?;
    Some(if operations(second) < operations(first) { second } else { first })
}

/// Two of the servers, different ones if there are two.
pub(crate) fn two_of<T>(servers: &[T], draw: u64) -> Option<[&T; 2]> {
    let (first, second) = two_places(servers.len(), draw)?;
    Some([servers.get(first)?, servers.get(second)?])
}

/// Two places of so many, different ones if there are two; the halves of the draw decide on one each.
// SS-09
fn two_places(len: usize, draw: u64) -> Option<(usize, usize)> {
    let len = u64::try_from(len).ok().filter(|len| *len > 0)?;
    let (high, low) = (draw >> 32, draw & u64::from(u32::MAX));
    let first = (high * len) >> 32;
    if len == 1 {
        return Some((0, 0));
    }
    let others = (low * (len - 1)) >> 32;
    let second = if others < first { others } else { others + 1 };
    Some((usize::try_from(first).ok()?, usize::try_from(second).ok()?))
}

fn average(server: &Described<'_>) -> Duration {
    server.1.round_trip.map_or(Duration::ZERO, |round_trip| round_trip.average)
}

struct Selection<'a, 'b> {
    topology: &'a TopologyDescription,
    preference: &'b ReadPreference,
    heartbeat_frequency: Duration,
}

impl<'a> Selection<'a, '_> {
    // SS-10, SS-11
    fn among(&self, is_candidate: impl Fn(&ServerAddress) -> bool) -> Vec<Described<'a>> {
        let candidates = self.topology.servers().filter(|(address, _)| is_candidate(address));
        let of_kind = |wanted: ServerKind| {
            let servers = candidates.clone();
            servers.filter(|(_, server)| server.kind() == Some(wanted)).collect::<Vec<_>>()
        };
        match self.topology.kind {
            TopologyKind::Unknown => Vec::new(),
            TopologyKind::Single | TopologyKind::LoadBalanced => {
                candidates.filter(|(_, server)| server.is_known()).collect()
            }
            TopologyKind::Sharded => of_kind(ServerKind::Mongos),
            TopologyKind::ReplicaSetNoPrimary | TopologyKind::ReplicaSetWithPrimary => {
                self.members(of_kind(ServerKind::RsPrimary), of_kind(ServerKind::RsSecondary))
            }
        }
    }

    // SS-02, SS-12
    fn members(
        &self,
        primary: Vec<Described<'a>>,
        secondaries: Vec<Described<'a>>,
    ) -> Vec<Described<'a>> {
        let non_empty = |first: Vec<Described<'a>>, second: Vec<Described<'a>>| {
            if first.is_empty() { second } else { first }
        };
        match self.preference.mode {
            ReadPreferenceMode::Primary => primary,
            ReadPreferenceMode::PrimaryPreferred => non_empty(primary, self.eligible(secondaries)),
            ReadPreferenceMode::Secondary => self.eligible(secondaries),
            ReadPreferenceMode::SecondaryPreferred => {
                non_empty(self.eligible(secondaries), primary)
            }
            ReadPreferenceMode::Nearest => {
                self.eligible(primary.into_iter().chain(secondaries).collect())
            }
        }
    }

    /// Those that are not too stale and have the tags.
    // SS-04
    fn eligible(&self, mut servers: Vec<Described<'a>>) -> Vec<Described<'a>> {
        if let Some(limit) = self.preference.max_staleness {
            servers.retain(|(_, server)| self.is_fresh(server, limit));
        }
        let tag_sets = &self.preference.tag_sets;
        if tag_sets.is_empty() {
            return servers;
        }
        for tags in tag_sets {
            let has_tag = |server: &ServerDescription, (name, value): (&String, &String)| {
                server.membership().and_then(|said| said.tags.get(name)) == Some(value)
            };
            let has_all = |server: &ServerDescription| tags.iter().all(|tag| has_tag(server, tag));
            let fitting: Vec<_> =
                servers.iter().filter(|(_, server)| has_all(server)).copied().collect();
            if !fitting.is_empty() {
                return fitting;
            }
        }
        Vec::new()
    }

    /// A server that does not say when it wrote counts as stale.
    fn is_fresh(&self, server: &ServerDescription, limit: Duration) -> bool {
        if server.kind() == Some(ServerKind::RsPrimary) {
            return true;
        }
        let Some(behind) = self.staleness_ms(server) else { return false };
        behind <= milliseconds(limit)
    }

    /// How far behind the primary it is at most, or behind the most recent secondary where there is no primary.
    // SS-05
    fn staleness_ms(&self, server: &ServerDescription) -> Option<i128> {
        let heartbeat = milliseconds(self.heartbeat_frequency);
        let behind = match self.topology.primary() {
            Some((_, primary)) => lag_ms(server)? - lag_ms(primary)?,
            None => {
                let servers = self.topology.servers();
                let latest = servers.filter_map(|(_, server)| last_write_ms(server)).max()?;
                latest - last_write_ms(server)?
            }
        };
        Some(behind + heartbeat)
    }
}

/// From the last write to the check that told of it; the clocks differ, but for all servers alike.
fn lag_ms(server: &ServerDescription) -> Option<i128> {
    let updated = i128::from(server.updated?.as_nanos() / 1_000_000);
    Some(updated - last_write_ms(server)?)
}

fn last_write_ms(server: &ServerDescription) -> Option<i128> {
    server.hello.as_deref()?.last_write_ms.map(i128::from)
}

fn milliseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_millis()).unwrap_or(i128::MAX)
}

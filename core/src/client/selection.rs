use core::time::Duration;

use super::{
    Described, InvalidReadPreference, ReadPreference, Selector, in_latency_window, suitable,
};
use crate::address::ServerAddress;
use crate::connect::IncompatibleServer;
use crate::error::ConnectionError;
use crate::monitor::ServerDescription;
use crate::topology::{TopologyDescription, TopologyKind};
use crate::uri::ReadPreferenceMode;

/// What becomes of a caller that needs a server; `T` is how the embedder refers to its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection<T> {
    /// It uses this one.
    Found(T),
    /// No server fits yet. Have every server checked ([`RequestCheck`](crate::monitor::Input::RequestCheck)), and select
    /// again when an event [is news](crate::monitor::Event::is_news) or a server was added or removed.
    Wait,
    /// It wants the server at this address, which is none of the deployment. Waiting cannot help.
    Foreign(ServerAddress),
    /// No server speaks a wire version of this client. Have every server checked all the same, for later callers.
    Incompatible,
}

/// Selects a server by the present topology. Call it again on each change until it is not [`Selection::Wait`].
///
/// `choose` takes one of the servers that fit, within the latency window of the fastest, such as the
/// [better of two](super::choose_of_two); `None` if there is none, or the embedder has made none of them yet.
///
/// # Errors
///
/// The topology is a replica set, and the read preference of the selector cannot be followed.
pub fn select<T>(
    selector: &Selector,
    topology: &TopologyDescription,
    heartbeat_frequency: Duration,
    local_threshold: Duration,
    choose: impl FnOnce(&[Described<'_>]) -> Option<T>,
) -> Result<Selection<T>, InvalidReadPreference> {
    let (selector, avoided) = selector.parts();
    let fitting = fitting(selector, topology, heartbeat_frequency, local_threshold, avoided)?;
    if let Some(server) = choose(&fitting) {
        return Ok(Selection::Found(server));
    }
    Ok(match foreign(selector, topology) {
        Some(address) => Selection::Foreign(address.clone()),
        None if is_incompatible(selector, topology) => Selection::Incompatible,
        None => Selection::Wait,
    })
}

/// The servers that fit, within the latency window of the fastest.
fn fitting<'a>(
    selector: &Selector,
    topology: &'a TopologyDescription,
    heartbeat_frequency: Duration,
    local_threshold: Duration,
    avoided: &[ServerAddress],
) -> Result<Vec<Described<'a>>, InvalidReadPreference> {
    let any = &const { ReadPreference::of_mode(ReadPreferenceMode::Nearest) };
    let preference = match selector {
        Selector::Any => any,
        Selector::Primary => &ReadPreference::PRIMARY,
        Selector::Secondary => &const { ReadPreference::of_mode(ReadPreferenceMode::Secondary) },
        Selector::ReadPreference(preference) => preference,
        Selector::Avoiding { selector, .. } => {
            return fitting(selector, topology, heartbeat_frequency, local_threshold, avoided);
        }
        Selector::Address(address) => {
            let mut servers = suitable(topology, any, heartbeat_frequency, &[])?;
            servers.retain(|(its, _)| ***its == *address);
            return Ok(servers);
        }
    };
    let servers = suitable(topology, preference, heartbeat_frequency, avoided)?;
    // One is the fastest.
    if servers.len() < 2 {
        return Ok(servers);
    }
    Ok(in_latency_window(&servers, local_threshold))
}

/// Whether the servers that could fit speak no wire version of this client. Whatever else is wrong with a server, such as
/// its certificate or the name of its replica set, may be put right while the caller waits.
// SS-13, ST-13
fn is_incompatible(selector: &Selector, topology: &TopologyDescription) -> bool {
    if let Selector::Address(address) = selector
        && let Some(server) = topology.server(address)
    {
        return speaks_other_versions(server);
    }
    // One that is not known yet may be named by any of the others.
    let mut servers = topology.servers().map(|(_, server)| speaks_other_versions(server));
    servers.next().is_some_and(|first| first && servers.all(|it| it))
}

fn speaks_other_versions(server: &ServerDescription) -> bool {
    let source = server.error.as_ref().and_then(ConnectionError::source_as::<IncompatibleServer>);
    source.is_some()
}

/// The wanted server if it is not among those that are known, and will not be: all members of the topology are known
/// already.
fn foreign<'a>(
    selector: &'a Selector,
    topology: &TopologyDescription,
) -> Option<&'a ServerAddress> {
    let Selector::Address(address) = selector else { return None };
    let may_grow =
        matches!(topology.kind, TopologyKind::Unknown | TopologyKind::ReplicaSetNoPrimary);
    let is_foreign = !may_grow && topology.server(address).is_none();
    is_foreign.then_some(address)
}

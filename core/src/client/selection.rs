use core::time::Duration;

use super::{
    Described, InvalidReadPreference, ReadPreference, Selector, in_latency_window, suitable,
};
use crate::address::ServerAddress;
use crate::error::{Kind, Stage};
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
    /// No server fits, and waiting cannot help: all fail for a reason that does not pass with time, or none of the hosts
    /// of the connection string can be used. Have every server checked all the same, for later callers.
    Hopeless,
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
        None if is_hopeless(selector, topology) => Selection::Hopeless,
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
    let any = ReadPreference::of_mode(ReadPreferenceMode::Nearest);
    let secondary = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    let preference = match selector {
        Selector::Any => &any,
        Selector::Primary => &ReadPreference::PRIMARY,
        Selector::Secondary => &secondary,
        Selector::ReadPreference(preference) => preference,
        Selector::Avoiding { selector, .. } => {
            return fitting(selector, topology, heartbeat_frequency, local_threshold, avoided);
        }
        Selector::Address(address) => {
            let mut servers = suitable(topology, &any, heartbeat_frequency, &[])?;
            servers.retain(|(its, _)| ***its == *address);
            return Ok(servers);
        }
    };
    let servers = suitable(topology, preference, heartbeat_frequency, avoided)?;
    Ok(in_latency_window(&servers, local_threshold))
}

/// Whether waiting for a server that fits cannot help: all servers fail for a reason that does not pass with time, or
/// none of the hosts of the connection string can be used.
fn is_hopeless(selector: &Selector, topology: &TopologyDescription) -> bool {
    if let Selector::Address(address) = selector {
        if let Some(server) = topology.server(address) {
            return is_refused(server);
        }
    }
    // One that is not known yet may be named by any of the others.
    topology.servers().all(|(_, server)| is_refused(server))
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

/// Whether the problem of a server does not pass with time: a refused server, such as a
/// certificate, a protocol, the name of a replica set, stays refused. A TLS handshake that failed
/// otherwise, such as by an alert, may succeed later.
fn is_refused(description: &ServerDescription) -> bool {
    let Some(error) = &description.error else { return false };
    match error.kind() {
        Kind::Protocol => error.stage() != Stage::TlsIo,
        Kind::Configuration => true,
        Kind::Network
        | Kind::NetworkTimeout { .. }
        | Kind::NotSent { .. }
        | Kind::Command(_)
        | Kind::Local => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_refused;
    use crate::error::{ConnectionError, Stage, TlsFailure};
    use crate::monitor::ServerDescription;
    use core::time::Duration;

    #[test]
    fn what_waiting_mends() {
        let of = |error: Option<ConnectionError>| {
            is_refused(&ServerDescription { error, ..ServerDescription::default() })
        };
        assert!(!of(None));
        assert!(!of(Some(ConnectionError::network(Stage::Tcp, "refused"))));
        assert!(!of(Some(ConnectionError::timeout(Stage::Tcp, Duration::ZERO))));
        assert!(of(Some(ConnectionError::configuration(Stage::Hello, "another set"))));
        assert!(of(Some(ConnectionError::protocol(Stage::Hello, "no reply"))));
        assert!(!of(Some(ConnectionError::local(Stage::Tcp, "no more files"))));
        assert!(of(Some(ConnectionError::certificate("expired"))));
        assert!(!of(Some(ConnectionError::tls(Stage::TlsIo, TlsFailure::NotTls))));
    }
}

use core::time::Duration;

use super::{
    Described, InvalidReadPreference, ReadPreference, Selector, in_latency_window, suitable,
};
use crate::error::{Kind, Stage};
use crate::monitor::ServerDescription;
use crate::topology::{TopologyDescription, TopologyKind};
use crate::uri::ReadPreferenceMode;

/// The servers that fit, within the latency window of the fastest: one of them is to be
/// [chosen](super::choose_of_two).
///
/// # Errors
///
/// The topology is a replica set, and the read preference of the selector cannot be followed.
pub fn fitting<'a>(
    selector: &Selector,
    topology: &'a TopologyDescription,
    heartbeat_frequency: Duration,
    local_threshold: Duration,
) -> Result<Vec<Described<'a>>, InvalidReadPreference> {
    let any = ReadPreference::of_mode(ReadPreferenceMode::Nearest);
    let secondary = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    let preference = match selector {
        Selector::Any => &any,
        Selector::Primary => &ReadPreference::PRIMARY,
        Selector::Secondary => &secondary,
        Selector::ReadPreference(preference) => preference,
        Selector::Address(address) => {
            let mut servers = suitable(topology, &any, heartbeat_frequency, &[])?;
            servers.retain(|(its, _)| ***its == *address);
            return Ok(servers);
        }
    };
    let servers = suitable(topology, preference, heartbeat_frequency, &[])?;
    Ok(in_latency_window(&servers, local_threshold))
}

/// Whether waiting for a server that fits cannot help: all servers fail for a reason that does not pass with time, or
/// none of the hosts of the connection string can be used.
#[must_use]
pub fn is_hopeless(selector: &Selector, topology: &TopologyDescription) -> bool {
    if let Selector::Address(address) = selector {
        if let Some(server) = topology.server(address) {
            return is_refused(server);
        }
    }
    // One that is not known yet may be named by any of the others.
    topology.servers().all(|(_, server)| is_refused(server))
}

/// Whether a server is not among those that are known, and will not be: all members of the topology are known already.
#[must_use]
pub fn is_foreign(selector: &Selector, topology: &TopologyDescription) -> bool {
    let Selector::Address(address) = selector else { return false };
    let may_grow =
        matches!(topology.kind, TopologyKind::Unknown | TopologyKind::ReplicaSetNoPrimary);
    !may_grow && topology.server(address).is_none()
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

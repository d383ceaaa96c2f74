use super::Selector;
use crate::connect::ServerKind;
use crate::error::{Kind, Stage};
use crate::monitor::ServerDescription;
use crate::pool::{Instant, Snapshot};

/// A server during server selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// `None` while it is Unknown.
    pub kind: Option<ServerKind>,
    /// Since when, by a clock that all servers of the client share.
    pub since: Instant,
    /// Whether it fits whatever its type: a `directConnection`, or a load balancer.
    pub is_direct: bool,
}

impl Candidate {
    /// A load balancer, which is always available and fits every selector.
    pub const LOAD_BALANCER: Self =
        Self { kind: Some(ServerKind::LoadBalancer), since: Instant::ORIGIN, is_direct: true };

    fn fits(&self, selector: &Selector) -> bool {
        self.kind.is_some_and(|kind| self.is_direct || selector.accepts(kind))
    }
}

/// One of those that fit. Of several primaries, which there are for a moment when one was elected
/// and the other has not been asked since, it is the one that became it last; of other servers the
/// one whose pool has least to do. `seen` and `load` look at a server; the second is called only
/// where there is a choice, and may have to lock.
pub fn choose<S: Copy>(
    selector: &Selector,
    servers: impl Iterator<Item = S>,
    seen: impl Fn(S) -> Candidate,
    load: impl Fn(S) -> Snapshot,
) -> Option<S> {
    let mut fitting = servers
        .map(|server| (server, seen(server)))
        .filter(|(_, candidate)| candidate.fits(selector));
    let first = fitting.next()?;
    let Some(second) = fitting.next() else { return Some(first.0) };
    let fitting = [first, second].into_iter().chain(fitting);
    let chosen = match selector {
        Selector::Primary => fitting.max_by_key(|(_, candidate)| candidate.since),
        Selector::Any | Selector::Secondary | Selector::Address(_) => {
            fitting.min_by_key(|&(server, _)| {
                let pool = load(server);
                u64::from(pool.in_use) + pool.waiting
            })
        }
    };
    chosen.map(|(server, _)| server)
}

/// Whether the problem of a server does not pass with time: a refused server, such as a
/// certificate, a protocol, the name of a replica set, stays refused. A TLS handshake that failed
/// otherwise, such as by an alert, may succeed later.
#[must_use]
pub fn is_hopeless(description: &ServerDescription) -> bool {
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
    use super::{Candidate, choose, is_hopeless};
    use crate::client::Selector;
    use crate::connect::ServerKind::{self, Mongos, RsPrimary, RsSecondary};
    use crate::error::{ConnectionError, Stage, TlsFailure};
    use crate::monitor::ServerDescription;
    use crate::pool::{Instant, NoPayload, PoolOptions, PoolState, Snapshot};
    use core::time::Duration;

    /// Its type, since when, and its connections in use.
    type Server = (Option<ServerKind>, u64, u32);

    fn idle() -> Snapshot {
        let mut out = Vec::new();
        let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut out);
        pool.unwrap().snapshot()
    }

    fn chosen(selector: &Selector, servers: &[Server]) -> Option<usize> {
        let seen = |at: usize| {
            let (kind, since, _) = servers[at];
            let since = Instant::ORIGIN + Duration::from_secs(since);
            Candidate { kind, since, is_direct: false }
        };
        let load = |at: usize| Snapshot { in_use: servers[at].2, ..idle() };
        choose(selector, 0..servers.len(), seen, load)
    }

    #[test]
    fn the_one_that_became_the_primary_last() {
        let (primary, secondary) = (Some(RsPrimary), Some(RsSecondary));
        let servers = [(primary, 3, 0), (secondary, 9, 0), (primary, 5, 7), (None, 0, 0)];
        assert_eq!(chosen(&Selector::Primary, &servers), Some(2));
    }

    #[test]
    fn the_one_that_has_least_to_do() {
        let secondary = Some(RsSecondary);
        let servers = [(secondary, 1, 5), (Some(RsPrimary), 1, 0), (secondary, 1, 2)];
        assert_eq!(chosen(&Selector::Secondary, &servers), Some(2));
        assert_eq!(chosen(&Selector::Any, &servers), Some(1));
        assert_eq!(chosen(&Selector::Secondary, &servers[..2]), Some(0));
    }

    #[test]
    fn waiting_requests_count_as_load() {
        let seen = |_| Candidate { is_direct: true, ..Candidate::LOAD_BALANCER };
        let load = |at: usize| {
            let (in_use, waiting) = [(2, 5), (4, 0), (3, 2)][at];
            Snapshot { in_use, waiting, ..idle() }
        };
        assert_eq!(choose(&Selector::Any, 0..3, seen, load), Some(1));
    }

    #[test]
    fn none_where_none_fits() {
        assert_eq!(chosen(&Selector::Any, &[]), None);
        assert_eq!(chosen(&Selector::Any, &[(None, 0, 0)]), None);
        assert_eq!(chosen(&Selector::Secondary, &[(Some(RsPrimary), 0, 0)]), None);
        assert_eq!(chosen(&Selector::Secondary, &[(Some(Mongos), 0, 0)]), Some(0), "a router");
    }

    #[test]
    fn a_direct_connection_fits_whatever_its_type() {
        let arbiter = Candidate {
            kind: Some(ServerKind::RsArbiter),
            since: Instant::ORIGIN,
            is_direct: true,
        };
        for it in [arbiter, Candidate::LOAD_BALANCER] {
            for selector in [Selector::Any, Selector::Primary, Selector::Secondary] {
                assert!(it.fits(&selector), "{selector}");
            }
        }
        assert!(!Candidate { is_direct: false, ..arbiter }.fits(&Selector::Any));
        assert!(!Candidate { kind: None, ..arbiter }.fits(&Selector::Any));
    }

    #[test]
    fn what_waiting_mends() {
        let of = |error: Option<ConnectionError>| {
            is_hopeless(&ServerDescription { error, ..ServerDescription::default() })
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

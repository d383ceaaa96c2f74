use core::ops::Range;
use core::time::Duration;

use super::Selector;
use crate::address::ServerAddress;
use crate::uri::ConnectionString;

/// The settings of a client from its connection string, except those of pools and monitors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientSettings {
    hosts: Vec<ServerAddress>,
    /// Where each of them is among the hosts, in the order of addresses.
    by_address: Vec<usize>,
    /// Whether monitors watch them: not behind a load balancer.
    pub is_watched: bool,
    /// `serverSelectionTimeoutMS`: how long a server is waited for; default 30 s.
    pub selection_timeout: Duration,
    /// `timeoutMS`: how long an operation may take, from selection to the reply. Zero is without
    /// limit; `None`, the default, leaves the older timeouts in force.
    pub operation_timeout: Option<Duration>,
}

impl ClientSettings {
    /// `serverSelectionTimeoutMS` where the connection string has none.
    const SELECTION_TIMEOUT: Duration = Duration::from_secs(30);

    /// From a connection string.
    #[must_use]
    pub fn new(uri: &ConnectionString) -> Self {
        let selection_timeout = uri.topology.server_selection_timeout;
        let hosts = distinct(&uri.hosts);
        let mut by_address: Vec<_> = (0..hosts.len()).collect();
        by_address.sort_by_key(|&at| hosts.get(at));
        Self {
            hosts,
            by_address,
            is_watched: uri.topology.load_balanced != Some(true),
            selection_timeout: selection_timeout.unwrap_or(Self::SELECTION_TIMEOUT),
            operation_timeout: uri.timeouts.operation,
        }
    }
}

/// The servers they are about.
impl ClientSettings {
    /// A server each, in the order of the text, and none twice.
    #[must_use]
    pub fn hosts(&self) -> &[ServerAddress] {
        &self.hosts
    }

    /// Where a server is among the [hosts](Self::hosts); `None` is for one that is none of them. As
    /// fast with a thousand of them as with three, nearly.
    #[must_use]
    pub fn place_of(&self, address: &ServerAddress) -> Option<usize> {
        let found = self.by_address.binary_search_by_key(&Some(address), |&at| self.hosts.get(at));
        found.ok().and_then(|at| self.by_address.get(at).copied())
    }

    /// The indexes of those hosts.
    #[must_use]
    pub fn places(&self, selector: &Selector) -> Range<usize> {
        match selector {
            Selector::Address(address) => self.place_of(address).map_or(0..0, |at| at..at + 1),
            Selector::Any | Selector::Primary | Selector::Secondary => 0..self.hosts.len(),
        }
    }
}

fn distinct(hosts: &[ServerAddress]) -> Vec<ServerAddress> {
    let mut distinct: Vec<ServerAddress> = Vec::with_capacity(hosts.len());
    // The order is the text's; a set beside it keeps a thousand hosts from a million comparisons.
    let mut known = std::collections::BTreeSet::new();
    for host in hosts {
        if known.insert(host) {
            distinct.push(host.clone());
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::ClientSettings;
    use crate::address::ServerAddress;
    use crate::client::Selector;
    use crate::uri::ConnectionString;

    fn of(uri: &str) -> ClientSettings {
        ClientSettings::new(&ConnectionString::parse(uri).unwrap())
    }

    // SD-07
    #[test]
    fn a_host_that_is_named_twice_is_one() {
        let settings = of("mongodb://b:1,a:1,B:1,a:2,a:1");
        let hosts: Vec<_> = settings.hosts().iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["b:1", "a:1", "a:2"]);
    }

    #[test]
    fn each_host_is_found_at_its_place() {
        let settings = of("mongodb://d,b:1,a,c,b:2");
        for (at, host) in settings.hosts().iter().enumerate() {
            assert_eq!(settings.place_of(host), Some(at));
            assert_eq!(settings.places(&Selector::Address(host.clone())), at..at + 1);
        }
        let other: ServerAddress = "e".parse().unwrap();
        assert_eq!(settings.place_of(&other), None);
        assert!(settings.places(&Selector::Address(other)).is_empty());
        assert_eq!(settings.places(&Selector::Any), 0..5);
    }

    // OP-21, CS-01, LB-08
    #[test]
    fn what_is_not_said_has_its_default() {
        let settings = of("mongodb://db");
        assert_eq!(settings.selection_timeout, Duration::from_secs(30));
        assert_eq!((settings.operation_timeout, settings.is_watched), (None, true));
        let settings = of("mongodb://db/?loadBalanced=true&timeoutMS=0");
        let zero = Some(Duration::ZERO);
        assert_eq!((settings.operation_timeout, settings.is_watched), (zero, false));
        let settings = of("mongodb://db/?serverSelectionTimeoutMS=7&timeoutMS=9");
        let ms = Duration::from_millis;
        assert_eq!((settings.selection_timeout, settings.operation_timeout), (ms(7), Some(ms(9))));
    }
}

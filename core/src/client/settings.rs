use core::time::Duration;

use crate::address::ServerAddress;
use crate::uri::ConnectionString;
use crate::uri::srv::distinct;

/// The settings of a client from its connection string, except its [`Hosts`] and those of pools and monitors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientSettings {
    /// Whether monitors watch them: not behind a load balancer.
    pub is_watched: bool,
    /// `serverSelectionTimeoutMS`: how long a server is waited for; default 30 s.
    pub selection_timeout: Duration,
    /// `timeoutMS`: how long an operation may take, from selection to the reply. Zero is without
    /// limit; `None`, the default, leaves the older timeouts in force.
    pub operation_timeout: Option<Duration>,
    /// `localThresholdMS`: how much longer than the fastest a server may take to answer; default 15 ms.
    pub local_threshold: Duration,
}

impl ClientSettings {
    /// `serverSelectionTimeoutMS` where the connection string has none.
    const SELECTION_TIMEOUT: Duration = Duration::from_secs(30);
    /// `localThresholdMS` where the connection string has none.
    // SS-01
    const LOCAL_THRESHOLD: Duration = Duration::from_millis(15);

    /// From a connection string.
    #[must_use]
    pub fn new(uri: &ConnectionString) -> Self {
        let selection_timeout = uri.topology.server_selection_timeout;
        Self {
            is_watched: uri.topology.load_balanced != Some(true),
            selection_timeout: selection_timeout.unwrap_or(Self::SELECTION_TIMEOUT),
            operation_timeout: uri.timeouts.operation,
            local_threshold: uri.topology.local_threshold.unwrap_or(Self::LOCAL_THRESHOLD),
        }
    }
}

/// The servers of a client: a server each, and none twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    hosts: Vec<ServerAddress>,
    /// Where each of them is among the hosts, in the order of addresses.
    by_address: Vec<usize>,
}

impl Hosts {
    /// In this order, such as that of a connection string.
    #[must_use]
    pub fn new(hosts: &[ServerAddress]) -> Self {
        // SD-07
        let hosts = distinct(hosts.to_vec());
        let mut by_address: Vec<_> = (0..hosts.len()).collect();
        by_address.sort_by_key(|&at| hosts.get(at));
        Self { hosts, by_address }
    }

    /// In their order.
    #[must_use]
    pub fn all(&self) -> &[ServerAddress] {
        &self.hosts
    }

    /// Where a server is among [all](Self::all); `None` is for one that is none of them. As
    /// fast with a thousand of them as with three, nearly.
    #[must_use]
    pub fn place_of(&self, address: &ServerAddress) -> Option<usize> {
        let found = self.by_address.binary_search_by_key(&Some(address), |&at| self.hosts.get(at));
        found.ok().and_then(|at| self.by_address.get(at).copied())
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{ClientSettings, Hosts};
    use crate::address::ServerAddress;
    use crate::uri::ConnectionString;

    fn of(uri: &str) -> ClientSettings {
        ClientSettings::new(&ConnectionString::parse(uri).unwrap())
    }

    fn hosts_of(uri: &str) -> Hosts {
        Hosts::new(&ConnectionString::parse(uri).unwrap().hosts)
    }

    // SD-07
    #[test]
    fn a_host_that_is_named_twice_is_one() {
        let hosts = hosts_of("mongodb://b:1,a:1,B:1,a:2,a:1");
        let hosts: Vec<_> = hosts.all().iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["b:1", "a:1", "a:2"]);
    }

    #[test]
    fn each_host_is_found_at_its_place() {
        let hosts = hosts_of("mongodb://d,b:1,a,c,b:2");
        for (at, host) in hosts.all().iter().enumerate() {
            assert_eq!(hosts.place_of(host), Some(at));
        }
        let other: ServerAddress = "e".parse().unwrap();
        assert_eq!(hosts.place_of(&other), None);
    }

    // OP-21, CS-01, LB-08, SS-01
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

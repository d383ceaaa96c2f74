//! Where names are looked up, and which servers the answers may name.

use std::net::SocketAddr;
use std::time::Duration;

use cenote_shell::client::{BuiltClient, ClientBuilder};

/// Whether a server is accepted.
type HostValidator = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Where names are looked up.
pub struct NameService {
    /// The name server.
    pub address: SocketAddr,
    /// How often records are looked up again, at least.
    pub interval: Duration,
    /// The domain of the servers, instead of that of the connection string.
    pub suffix: Option<&'static str>,
    /// Whether a server is accepted.
    pub validator: Option<HostValidator>,
}

impl NameService {
    /// Servers below the domain of the connection string are accepted.
    #[must_use]
    pub const fn new(address: SocketAddr, interval: Duration) -> Self {
        Self { address, interval, suffix: None, validator: None }
    }

    pub(crate) fn apply<C: BuiltClient>(self, mut builder: ClientBuilder<C>) -> ClientBuilder<C> {
        builder = builder.name_servers([self.address]).shortest_srv_interval(self.interval);
        if let Some(suffix) = self.suffix {
            builder = builder.srv_allowed_hosts_suffix(suffix);
        }
        match self.validator {
            Some(validator) => builder.srv_host_validator(validator),
            None => builder,
        }
    }
}

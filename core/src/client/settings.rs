use core::time::Duration;

use crate::uri::{ConnectionString, RetryOptions};

/// The settings of a client from its connection string, except its hosts and those of pools and monitors.
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
    /// What a driver tries again: for [`OverloadRetries`](super::OverloadRetries).
    pub retries: RetryOptions,
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
            retries: uri.retries.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::ClientSettings;
    use crate::uri::ConnectionString;

    fn of(uri: &str) -> ClientSettings {
        ClientSettings::new(&ConnectionString::parse(uri).unwrap())
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

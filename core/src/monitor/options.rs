//! How a server is watched.

use core::time::Duration;

use thiserror::Error;

use crate::uri::{ConnectionString, ServerMonitoringMode};

/// How a server is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MonitorOptions {
    /// `heartbeatFrequencyMS`: the pause between two checks, and how long a server that streams may
    /// say nothing; at least 500 ms, default 10 s.
    pub heartbeat_frequency: Duration,
    /// `connectTimeoutMS`: how long a reply may take; for streamed replies `heartbeat_frequency` is
    /// added. Default 10 s; zero is without limit.
    pub connect_timeout: Duration,
    /// `serverMonitoringMode`: whether servers are to stream; default is where that is of use.
    pub mode: ServerMonitoringMode,
    /// Whether this process is a function on a platform that freezes it between two calls; default
    /// no. [`Environment::is_faas`](crate::connect::Environment::is_faas) finds out. Then
    /// `ServerMonitoringMode::Auto` means polling.
    pub is_faas: bool,
    /// `replicaSet` with `directConnection`: the required name of the replica set; default is any name, or none. Without
    /// `directConnection` the [topology](crate::topology) compares it.
    pub set_name: Option<String>,
}

/// Why nothing can be watched like that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidMonitorOptions {
    /// `heartbeatFrequencyMS` is too small.
    #[error(
        "heartbeatFrequencyMS is {given:?}, which is less than {least:?}: servers are not asked more \
         often",
        least = MonitorOptions::MIN_HEARTBEAT_FREQUENCY
    )]
    HeartbeatFrequency {
        /// As it was set.
        given: Duration,
    },
    /// Load balancers have no monitors.
    // LB-40
    #[error("there is nothing to watch behind a load balancer: mark its pool ready at once")]
    LoadBalanced,
}

impl MonitorOptions {
    /// The least pause between two checks, whether or not one is requested.
    pub const MIN_HEARTBEAT_FREQUENCY: Duration = Duration::from_millis(500);
    /// `heartbeatFrequencyMS` and `connectTimeoutMS` by default.
    const DEFAULT: Duration = Duration::from_secs(10);

    /// From a connection string. What it cannot know is whether this is a function on a
    /// platform: `is_faas`.
    // CS-16
    #[must_use]
    pub fn new(uri: &ConnectionString, is_faas: bool) -> Self {
        let default = Self::default();
        let is_direct = uri.topology.direct_connection == Some(true);
        Self {
            heartbeat_frequency: uri
                .monitoring
                .heartbeat_frequency
                .unwrap_or(default.heartbeat_frequency),
            connect_timeout: uri.timeouts.connect.unwrap_or(default.connect_timeout),
            mode: uri.monitoring.server_monitoring_mode.unwrap_or_default(),
            is_faas,
            set_name: uri.topology.replica_set.clone().filter(|_| is_direct),
        }
    }

    /// Whether servers can be watched so.
    ///
    /// # Errors
    ///
    /// A heartbeat frequency below 500 ms.
    pub fn validate(&self) -> Result<(), InvalidMonitorOptions> {
        let given = self.heartbeat_frequency;
        if given < Self::MIN_HEARTBEAT_FREQUENCY {
            return Err(InvalidMonitorOptions::HeartbeatFrequency { given });
        }
        Ok(())
    }

    // SM-02
    pub(super) const fn may_stream(&self) -> bool {
        match self.mode {
            ServerMonitoringMode::Stream => true,
            ServerMonitoringMode::Poll => false,
            ServerMonitoringMode::Auto => !self.is_faas,
        }
    }

    /// How long a reply may take; `None` is without limit.
    // SD-52
    pub(super) fn reply_timeout(&self, awaited: bool) -> Option<Duration> {
        if self.connect_timeout.is_zero() {
            return None;
        }
        let waits = if awaited { self.heartbeat_frequency } else { Duration::ZERO };
        Some(self.connect_timeout.saturating_add(waits))
    }
}

impl Default for MonitorOptions {
    fn default() -> Self {
        Self {
            heartbeat_frequency: Self::DEFAULT,
            connect_timeout: Self::DEFAULT,
            mode: ServerMonitoringMode::Auto,
            is_faas: false,
            set_name: None,
        }
    }
}

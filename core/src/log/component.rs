use core::fmt;

/// What messages are about. Applications choose a [`Threshold`](super::Threshold) for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Component {
    /// Pools and their connections.
    Connection,
    /// The servers of a deployment, and the heartbeats of their monitors.
    Topology,
    /// The selection of a server for an operation.
    ServerSelection,
}

impl Component {
    /// Every component.
    pub const ALL: [Self; 3] = [Self::Connection, Self::Topology, Self::ServerSelection];

    /// The environment variable for all components. The core reads none.
    pub const VARIABLE_OF_ALL: &'static str = "MONGODB_LOG_ALL";

    /// As the specification spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Topology => "topology",
            Self::ServerSelection => "serverSelection",
        }
    }

    /// The environment variable for this component. The core reads none.
    // LG-42
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Connection => "MONGODB_LOG_CONNECTION",
            Self::Topology => "MONGODB_LOG_TOPOLOGY",
            Self::ServerSelection => "MONGODB_LOG_SERVER_SELECTION",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

//! Events of a topology.

use std::sync::Arc;

use super::TopologyDescription;
use crate::address::ServerAddress;
use crate::monitor::ServerDescription;

/// An event of the topology, in the words of SDAM.
// SE-01
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The first event.
    TopologyOpening,
    /// Something else is known of the deployment; times do not count.
    TopologyDescriptionChanged {
        /// The previous description.
        previous: Arc<TopologyDescription>,
        /// The new description.
        new: Arc<TopologyDescription>,
    },
    /// The last event.
    TopologyClosed,
    /// A server belongs to the deployment now.
    ServerOpening {
        /// The server.
        address: Arc<ServerAddress>,
    },
    /// A server is known as something else now; times do not count.
    ServerDescriptionChanged {
        /// The server.
        address: Arc<ServerAddress>,
        /// The previous description.
        previous: Arc<ServerDescription>,
        /// The new description.
        new: Arc<ServerDescription>,
    },
    /// A server belongs to the deployment no longer.
    ServerClosed {
        /// The server.
        address: Arc<ServerAddress>,
    },
}

impl Event {
    /// The type's name, as the specifications spell it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TopologyOpening => "TopologyOpening",
            Self::TopologyDescriptionChanged { .. } => "TopologyDescriptionChanged",
            Self::TopologyClosed => "TopologyClosed",
            Self::ServerOpening { .. } => "ServerOpening",
            Self::ServerDescriptionChanged { .. } => "ServerDescriptionChanged",
            Self::ServerClosed { .. } => "ServerClosed",
        }
    }
}

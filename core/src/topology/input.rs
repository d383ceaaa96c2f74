//! What goes in.

use std::sync::Arc;

use super::ServerId;
use crate::address::ServerAddress;
use crate::monitor::ServerDescription;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A check of a server has ended, or a connection of the application has failed and the
    /// [verdict](crate::sdam::verdict()) is that the server is Unknown. Ignored if the server was removed, or a newer
    /// version of its state is known.
    Described {
        /// As it came with `AddServer`.
        id: ServerId,
        /// What is known of it now.
        description: Arc<ServerDescription>,
    },
    /// The hosts of a connection string are others now: its SRV records have been read again. Servers that are not
    /// among them are removed, and new ones are added. Ignored once it is known that this is no sharded cluster, and
    /// when there are none. A topology of any kind that has excluded hosts, and knows no server, takes them, to ask those
    /// again.
    Hosts {
        /// All of them.
        hosts: Vec<ServerAddress>,
    },
    /// The client closes: every server is removed, and all inputs are ignored.
    Close,
}

impl Input {
    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Described { .. } => "Described",
            Self::Hosts { .. } => "Hosts",
            Self::Close => "Close",
        }
    }
}

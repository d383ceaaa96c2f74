use core::fmt;

use super::ReadPreference;
use crate::address::ServerAddress;

/// Which servers fit, by their last known type.
///
/// Servers that belong to no replica set fit every selector but an address: routers,
/// standalone servers, load balancers. So does the one server of a `directConnection`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selector {
    /// Any that serves data.
    Any,
    /// The primary.
    Primary,
    /// A secondary.
    Secondary,
    /// The members of the replica set that a read preference allows.
    ReadPreference(ReadPreference),
    /// This server, once it serves data.
    Address(ServerAddress),
    /// As another selector, but some servers are chosen only where no other fits:
    /// [`avoiding`](Self::avoiding).
    // SS-16
    #[non_exhaustive]
    Avoiding {
        /// The other one.
        selector: Box<Selector>,
        /// The servers that come last.
        servers: Vec<ServerAddress>,
    },
}

impl Selector {
    /// The same, but these servers are chosen only where no other fits, such as one where an operation that is tried
    /// again has just failed. The specification calls them *deprioritized*. An [address](Self::Address) is chosen all
    /// the same. Replaces those of an earlier call.
    #[must_use]
    pub fn avoiding(self, servers: impl IntoIterator<Item = ServerAddress>) -> Self {
        let servers: Vec<_> = servers.into_iter().collect();
        let selector =
            if let Self::Avoiding { selector, .. } = self { selector } else { Box::new(self) };
        if servers.is_empty() { *selector } else { Self::Avoiding { selector, servers } }
    }

    /// The selector without the servers that it avoids, and these.
    pub(crate) fn parts(&self) -> (&Self, &[ServerAddress]) {
        let Self::Avoiding { selector, servers } = self else { return (self, &[]) };
        (selector, servers)
    }
}

/// As in `no primary`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("server that serves data"),
            Self::Primary => f.write_str("primary, router or standalone server"),
            Self::Secondary => f.write_str("secondary, router or standalone server"),
            Self::ReadPreference(preference) => {
                write!(
                    f,
                    "member for the read preference {preference}, router or standalone server"
                )
            }
            Self::Address(address) => write!(f, "server that serves data at {address}"),
            // Where none fits, these do not either.
            Self::Avoiding { selector, .. } => selector.fmt(f),
        }
    }
}

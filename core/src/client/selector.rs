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
        }
    }
}

use core::fmt;

use crate::address::ServerAddress;
use crate::connect::ServerKind;

/// Which servers fit, by their last known type.
///
/// Servers that belong to no replica set fit every selector but an address: routers,
/// standalone servers, load balancers. So does the one server of a `directConnection`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selector {
    /// Any that serves data.
    Any,
    /// The primary. If two say that they are, the one that became it last.
    Primary,
    /// A secondary; of several, the one whose pool has least to do.
    Secondary,
    /// This host of the connection string, once it serves data.
    Address(ServerAddress),
}

impl Selector {
    /// Whether a server of this kind is one.
    #[must_use]
    pub fn accepts(&self, kind: ServerKind) -> bool {
        match (self, kind) {
            (Self::Any | Self::Address(_), kind) => kind.is_data_bearing(),
            (_, ServerKind::Standalone | ServerKind::Mongos | ServerKind::LoadBalancer) => true,
            (Self::Primary, kind) => kind == ServerKind::RsPrimary,
            (Self::Secondary, kind) => kind == ServerKind::RsSecondary,
        }
    }
}

/// As in `no primary`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("server that serves data"),
            Self::Primary => f.write_str("primary, router or standalone server"),
            Self::Secondary => f.write_str("secondary, router or standalone server"),
            Self::Address(address) => write!(f, "server that serves data at {address}"),
        }
    }
}

use std::fmt;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::connect::ServerKind;
use cenote_core::error::Kind;
use cenote_core::monitor::ServerDescription;
use cenote_core::pool::{Instant, Snapshot};

use super::selector::Selector;
use super::watch::Watch;
use crate::pool::Pool;

/// One host: its pool, and who watches it.
pub(super) struct Server {
    pub(super) pool: Pool,
    pub(super) watching: Watching,
}

pub(super) enum Watching {
    Monitor(Arc<Watch>),
    /// There is nothing to watch (LB-40).
    LoadBalancer,
}

/// One server of a [`Client`](super::Client) as it was at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// As the connection string has it.
    pub address: Arc<ServerAddress>,
    /// What it was last seen as; `None` is Unknown. A load balancer is always one.
    pub kind: Option<ServerKind>,
    /// What it said, or why it is Unknown. Empty for a load balancer, which nobody watches.
    pub description: Arc<ServerDescription>,
    /// The state and the counts of its pool.
    pub pool: Snapshot,
}

impl Server {
    pub(super) fn status(&self) -> ServerStatus {
        let description = match &self.watching {
            Watching::Monitor(watch) => watch.description(),
            Watching::LoadBalancer => Arc::default(),
        };
        let kind = match &self.watching {
            Watching::Monitor(_) => description.kind(),
            Watching::LoadBalancer => Some(ServerKind::LoadBalancer),
        };
        let address = Arc::clone(&self.pool.shared().address);
        ServerStatus { address, kind, description, pool: self.pool.snapshot() }
    }

    /// Whether it can be chosen now, and since when it has been what it is.
    pub(super) fn fits(&self, selector: &Selector) -> Option<Instant> {
        match &self.watching {
            Watching::Monitor(watch) => {
                let (kind, since) = watch.kind()?;
                (watch.is_direct() || selector.accepts(kind)).then_some(since)
            }
            Watching::LoadBalancer => Some(Instant::ORIGIN),
        }
    }

    /// Whether waiting cannot mend what is wrong with it: what is refused on sight stays refused.
    pub(super) fn is_hopeless(&self) -> bool {
        let Watching::Monitor(watch) = &self.watching else { return false };
        let description = watch.description();
        let Some(error) = description.error.as_ref() else { return false };
        match error.kind() {
            Kind::Protocol | Kind::Configuration => true,
            Kind::Network | Kind::NetworkTimeout { .. } | Kind::Command(_) => false,
        }
    }

    pub(super) fn request_check(&self) {
        match &self.watching {
            Watching::Monitor(watch) => watch.request_check(),
            Watching::LoadBalancer => {}
        }
    }

    pub(super) fn watch(&self) -> Option<&Arc<Watch>> {
        match &self.watching {
            Watching::Monitor(watch) => Some(watch),
            Watching::LoadBalancer => None,
        }
    }
}

/// As in `db.example.com:27017: RSPrimary of rs0 [ready  gen 0 | …]`.
impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, kind, description, pool } = self;
        match kind {
            Some(kind @ ServerKind::LoadBalancer) => write!(f, "{address}: {kind} [{pool}]"),
            Some(_) | None => write!(f, "{address}: {description} [{pool}]"),
        }
    }
}

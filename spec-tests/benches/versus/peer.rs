//! Taking a connection and giving it back, the same for all pools.

use std::future::Future;

use crate::bare::{HandMade, Handed};
use crate::pools::Numbers;

/// A pool. What it hands out is given back when it is dropped.
pub(crate) trait Peer: Clone + Send + Sync + 'static {
    type Held: Send + 'static;

    /// `None` after the pool's own time limit, if it has one.
    fn take(&self) -> impl Future<Output = Option<Self::Held>> + Send;
}

impl Peer for HandMade {
    type Held = Handed;

    async fn take(&self) -> Option<Handed> {
        Some(self.hand().await)
    }
}

impl Peer for cenote_tokio::Pool<Numbers> {
    type Held = cenote_tokio::PooledConnection<Numbers>;

    async fn take(&self) -> Option<Self::Held> {
        self.check_out().await.ok()
    }
}

impl Peer for deadpool::managed::Pool<Numbers> {
    type Held = deadpool::managed::Object<Numbers>;

    async fn take(&self) -> Option<Self::Held> {
        self.get().await.ok()
    }
}

impl Peer for bb8::Pool<Numbers> {
    type Held = bb8::PooledConnection<'static, Numbers>;

    async fn take(&self) -> Option<Self::Held> {
        self.get_owned().await.ok()
    }
}

impl Peer for mobc::Pool<Numbers> {
    type Held = mobc::Connection<Numbers>;

    async fn take(&self) -> Option<Self::Held> {
        self.get().await.ok()
    }
}

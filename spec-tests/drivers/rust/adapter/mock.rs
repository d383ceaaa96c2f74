//! What the driver's own tests want of a pool besides.

use super::*;

impl ConnectionPool {
    /// A pool that is never ready, also outside of a runtime.
    pub(crate) fn new_mocked(address: ServerAddress) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let entered = runtime.enter();
        let options = crate::options::ClientOptions::builder().hosts(vec![address.clone()]).build();
        let establisher = ConnectionEstablisher::new((&options).into()).expect("no TLS");
        let (updater, _) = TopologyUpdater::channel();
        let pool = Self::new(address, establisher, updater, None, TopologyShutdown::new());
        drop(entered);
        runtime.shutdown_background();
        pool
    }
}

impl Pool {
    pub(crate) fn close(self: &Arc<Self>) {
        self.feed(|_| Input::Close);
    }
}

impl PoolGeneration {
    pub(crate) fn normal() -> Self {
        Self::Normal(0)
    }

    pub(crate) fn as_normal(&self) -> Option<u32> {
        match self {
            Self::Normal(generation) => Some(*generation),
            Self::LoadBalanced(_) => None,
        }
    }
}

//! What a pool cannot do without.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

/// A pool made by hand: as many permits as connections, and a list.
#[derive(Clone)]
pub(crate) struct HandMade {
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<u64>>>,
}

impl HandMade {
    pub(crate) fn new(connections: u64) -> Self {
        let permits = Arc::new(Semaphore::new(connections as usize));
        Self { permits, idle: Arc::new(Mutex::new((0..connections).collect())) }
    }

    /// Takes one, does something, gives it back.
    pub(crate) async fn with<R>(&self, use_it: impl AsyncFnOnce() -> R) -> R {
        let _permit = self.permits.acquire().await.expect("never closed");
        let taken = self.idle.lock().expect("no panic").pop().expect("as many as permits");
        let result = use_it().await;
        self.idle.lock().expect("no panic").push(std::hint::black_box(taken));
        result
    }
}

//! What a pool cannot do without.

use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

    /// The same, for as long as one likes.
    pub(crate) async fn hand(&self) -> Handed {
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("never closed");
        let number = self.idle.lock().expect("no panic").pop();
        Handed { idle: Arc::clone(&self.idle), number, _permit: permit }
    }
}

/// Gives itself back when it is dropped, before its permit.
pub(crate) struct Handed {
    idle: Arc<Mutex<Vec<u64>>>,
    number: Option<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Handed {
    fn drop(&mut self) {
        self.idle.lock().expect("no panic").extend(self.number);
    }
}

//! The client's clock, which jumps when the client was stopped.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::advance;

/// A clock that can be told to jump from outside of the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientClock(Arc<Jump>);

#[derive(Debug, Default)]
struct Jump {
    by: Mutex<Duration>,
    wanted: Notify,
}

impl ClientClock {
    /// In the next step, as if the client had been stopped for this time.
    pub(crate) fn jump(&self, by: Duration) {
        *self.0.by.lock().expect("no panic") += by;
        self.0.wanted.notify_one();
    }

    /// Jumps when it is told to, on the client.
    pub(crate) async fn run(self) {
        loop {
            self.0.wanted.notified().await;
            let by = std::mem::take(&mut *self.0.by.lock().expect("no panic"));
            advance(by).await;
        }
    }
}

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The way from the pool to whoever uses a connection: this one is broken off.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    happened: AtomicBool,
    notify: Notify,
}

impl Interrupt {
    /// Wakes whoever waits for it, now and later.
    pub(crate) fn happen(&self) {
        self.happened.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.happened.load(Ordering::Acquire)
    }

    /// When it happens, from the moment when this is polled or enabled.
    pub(crate) fn notified(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Until it happens, if it ever does.
    pub(crate) async fn happens(&self) {
        let mut notified = std::pin::pin!(self.notified());
        // Before the flag is read, so that no wake-up falls between the two.
        notified.as_mut().enable();
        if !self.has_happened() {
            notified.await;
        }
    }
}

use loom::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::futures::Notified;

/// tokio's, whose every use is a place where threads can change places. What it does inside is one
/// step.
#[derive(Default)]
pub(crate) struct Notify {
    notify: tokio::sync::Notify,
    uses: AtomicU32,
}

impl Notify {
    pub(crate) fn notified(&self) -> Notified<'_> {
        self.uses.fetch_add(1, Ordering::SeqCst);
        self.notify.notified()
    }

    pub(crate) fn notify_one(&self) {
        self.uses.fetch_add(1, Ordering::SeqCst);
        self.notify.notify_one();
    }

    pub(crate) fn notify_waiters(&self) {
        self.uses.fetch_add(1, Ordering::SeqCst);
        self.notify.notify_waiters();
    }
}

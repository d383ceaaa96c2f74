//! Whether the pool's events keep the rules, in the parent and in the child.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cenote_check::EventGuard;
use cenote_core::pool::Event;
use cenote_tokio::PoolEvent;

/// A clone is the same. After a fork there are two, each with what was told before it.
#[derive(Clone)]
pub(crate) struct Judge {
    sentry: Arc<EventGuard>,
    /// No process reports anything.
    quiet: Arc<Mutex<()>>,
    /// Whether the next connection that is closed is so because the pool has noticed a fork.
    is_to_notice: Arc<AtomicBool>,
}

impl Default for Judge {
    fn default() -> Self {
        // Children stop the clock.
        Self {
            sentry: Arc::new(EventGuard::without_clock()),
            quiet: Arc::default(),
            is_to_notice: Arc::default(),
        }
    }
}

impl Judge {
    pub(crate) fn hear(&self, event: &PoolEvent) {
        self.while_quiet(|| {
            let is_closed = matches!(event.event, Event::ConnectionClosed { .. });
            if is_closed && self.is_to_notice.swap(false, Ordering::Relaxed) {
                self.sentry.is_reset_after_fork(&event.address);
            }
            self.sentry.hear(&event.event, &event.address);
        });
    }

    /// The pool is about to notice by itself that this is a child, and then closes whatever it has.
    pub(crate) fn lets_it_notice(&self) {
        self.is_to_notice.store(true, Ordering::Relaxed);
    }

    pub(crate) fn sentry(&self) -> &EventGuard {
        &self.sentry
    }

    /// A thread that tells something during a fork would hold its lock in the child for ever, where it
    /// is not.
    pub(crate) fn while_quiet<R>(&self, work: impl FnOnce() -> R) -> R {
        let _quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    }
}

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::error::ConnectionError;
use cenote_core::pool::{CloseReason, Event};

use super::latency::{Latencies, Quantiles};
use super::summary::Lives;
use super::timeline::Timeline;

/// What the pool's events tell beside their order, which the checker judges.
pub(super) struct Seen {
    timeline: Arc<Timeline>,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    establishments: Latencies,
    lives: Lives,
}

impl Seen {
    pub(super) fn new(timeline: Arc<Timeline>) -> Self {
        Self { timeline, counted: Mutex::default() }
    }

    pub(super) fn hear(&self, event: &Event<ConnectionError>) {
        match event {
            Event::ConnectionReady { duration, .. } => {
                let mut counted = self.lock();
                counted.establishments.record(*duration);
                counted.lives.established += 1;
            }
            Event::ConnectionClosed { reason, .. } => {
                *self.lock().lives.closed.entry(reason.as_str()).or_default() += 1;
                if *reason == CloseReason::Error {
                    self.timeline.closed();
                }
            }
            Event::ConnectionPoolCleared { .. } => {
                self.lock().lives.pool_cleared += 1;
                self.timeline.cleared();
            }
            Event::ConnectionPoolReady => self.timeline.ready(),
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolClosed
            | Event::ConnectionCreated { .. }
            | Event::ConnectionCheckOutStarted { .. }
            | Event::ConnectionCheckOutFailed { .. }
            | Event::ConnectionCheckedOut { .. }
            | Event::ConnectionCheckedIn { .. }
            | _ => {}
        }
    }

    /// How long establishments took, and what became of connections.
    pub(super) fn connections(&self) -> (Quantiles, Lives) {
        let Counted { establishments, lives } = &*self.lock();
        (establishments.quantiles(), lives.clone())
    }

    /// Poisoning is ignored: the counts are valid at any time.
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

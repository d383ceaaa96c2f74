use std::time::Instant;

use cenote_core::pool::Snapshot;

use super::PoolPlan;
#[cfg(feature = "metrics")]
use crate::metrics;

/// A pool that is measured with OpenTelemetry, if it was asked for (feature `metrics`).
#[derive(Debug)]
pub struct Measured(#[cfg(feature = "metrics")] metrics::Measured);

impl<K> PoolPlan<K> {
    /// Has events measured as they happen. The counts are those of the pool, once it is there:
    /// [`Measured::observe`]. `clock` says for how long connections are out: that of the shell, which
    /// may be a test's.
    ///
    /// Every shell does this, whatever its features: another crate may have turned the feature on,
    /// with which every builder takes a meter.
    pub fn measure(&mut self, clock: fn() -> Instant) -> Measured {
        #[cfg(feature = "metrics")]
        {
            let metrics = std::mem::take(&mut self.metrics);
            Measured(metrics::Measured::begin(metrics, &self.address, clock, &mut self.subscribers))
        }
        #[cfg(not(feature = "metrics"))]
        {
            let _ = clock;
            Measured()
        }
    }
}

impl Measured {
    /// Has the counts of the pool looked up with `look` whenever a meter's reader asks. `None`: the
    /// pool is gone.
    pub fn observe(&self, look: impl Fn() -> Option<Snapshot> + Clone + Send + Sync + 'static) {
        #[cfg(feature = "metrics")]
        self.0.observe(look);
        #[cfg(not(feature = "metrics"))]
        drop(look);
    }
}

use std::sync::Arc;
#[cfg(feature = "metrics")]
use std::sync::Weak;
use std::time::{Duration, Instant};

use super::PoolPlan;
use crate::connection::Connector;
#[cfg(feature = "metrics")]
use crate::metrics;
use crate::pool::PoolDriver;
use crate::runtime::Runtime;

/// A pool that is measured with OpenTelemetry, if it was asked for (feature `metrics`).
#[derive(Clone, Debug)]
pub(crate) struct Measured(#[cfg(feature = "metrics")] Arc<metrics::Measured>);

impl<K> PoolPlan<K> {
    /// Has events measured as they happen. The counts are those of the pool, once it is there:
    /// [`Measured::observe`]. `clock` says for how long connections are out: that of the shell, which
    /// may be a test's.
    pub(crate) fn measure(&mut self, clock: fn() -> Instant) -> Measured {
        #[cfg(feature = "metrics")]
        {
            let metrics = std::mem::take(&mut self.metrics);
            let subscribers = &mut self.subscribers;
            let measured = metrics::Measured::begin(metrics, &self.address, clock, subscribers);
            Measured(Arc::new(measured))
        }
        #[cfg(not(feature = "metrics"))]
        {
            let _ = clock;
            Measured()
        }
    }
}

impl Measured {
    /// Has the figures of the pool looked up for as long as it is there.
    pub(crate) fn observe<R: Runtime, K: Connector<R>>(&self, pool: &Arc<PoolDriver<R, K>>) {
        #[cfg(feature = "metrics")]
        {
            let pool: Weak<dyn metrics::Observed> = Arc::<PoolDriver<R, K>>::downgrade(pool);
            self.0.observe(&pool);
        }
        #[cfg(not(feature = "metrics"))]
        let _ = pool;
    }

    /// Whether nothing is measured.
    pub(crate) fn is_empty(&self) -> bool {
        #[cfg(feature = "metrics")]
        return self.0.is_empty();
        #[cfg(not(feature = "metrics"))]
        true
    }

    /// A stage of an establishment has ended: well, or with this `error.type`.
    pub(crate) fn stage(&self, stage: &'static str, took: Duration, error: Option<&'static str>) {
        #[cfg(feature = "metrics")]
        self.0.stage(stage, took, error);
        #[cfg(not(feature = "metrics"))]
        let _ = (stage, took, error);
    }
}

//! What OpenTelemetry is told of a pool: [`cenote_shell::metrics`].

use std::sync::Arc;
use std::time::Instant;

pub use cenote_shell::metrics::Metrics;

use crate::builder::Builder;
use crate::connector::Connector;

impl<K: Connector> Builder<K> {
    /// Measures the pool with OpenTelemetry (feature `metrics`): durations and timeouts as they
    /// happen, counts whenever the meter's reader asks, for as long as the pool lives. Without it no
    /// check-out pays anything; with it the pool tells its events, as with any subscriber.
    ///
    /// ```
    /// use cenote_mio::{Metrics, Pool};
    ///
    /// # fn main() -> Result<(), cenote_mio::BuildError> {
    /// let meter = opentelemetry::global::meter("my-service");
    /// let pool = Pool::builder("mongodb://db.example.com")?
    ///     .metrics(Metrics::new(meter).pool_name("orders"))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn metrics(self, metrics: Metrics) -> Self {
        let recorder = metrics.recorder(self.address(), Instant::now);
        let told = Arc::clone(&recorder);
        self.on_event(move |event| told.record(&event.event)).when_built(move |shared| {
            let pool = Arc::downgrade(shared);
            metrics.observe(&recorder, move || Some(pool.upgrade()?.snapshot()));
        })
    }
}

//! What OpenTelemetry is told of a pool: [`cenote_shell::metrics`].

use std::sync::Arc;

use cenote_shell::metrics::Measured;

/// ```
/// use cenote_tokio::{Metrics, Pool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), cenote_tokio::BuildError> {
/// let meter = opentelemetry::global::meter("my-service");
/// let pool = Pool::builder("mongodb://db.example.com")?
///     .metrics(Metrics::new(meter).pool_name("orders"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub use cenote_shell::metrics::Metrics;

use crate::connector::Connector;
use crate::shared::Shared;

impl<K: Connector> Shared<K> {
    /// Has its counts looked up, for as long as it lives.
    pub(crate) fn observe(self: &Arc<Self>, measured: &Measured) {
        let pool = Arc::downgrade(self);
        measured.observe(move || Some(pool.upgrade()?.snapshot()));
    }
}

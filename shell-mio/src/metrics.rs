//! What OpenTelemetry is told of a pool: [`cenote_shell::metrics`].

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
pub use cenote_shell::metrics::Metrics;

//! What OpenTelemetry is told of a pool: [`cenote_shell::metrics`].

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

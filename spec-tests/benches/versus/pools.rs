//! The pools, each with connections that cost nothing, full and ready.

use std::convert::Infallible;
use std::time::Duration;

use cenote_core::error::ConnectionError;
use cenote_core::pool::PoolOptions;
use cenote_tokio::{Builder, Connector, HandshakeReporter, Pool, Target, Tokio};

/// Connections are numbers.
#[derive(Debug)]
pub(crate) struct Numbers;

impl Connector<Tokio> for Numbers {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(&self, target: Target, _: HandshakeReporter) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

/// As they are by default, but for the size.
pub(crate) fn plain(connections: u32) -> PoolOptions {
    PoolOptions::default().with_max_pool_size(connections).with_max_connecting(connections)
}

/// With idle times and a limit for waiting, as services have them.
pub(crate) fn timed(connections: u32) -> PoolOptions {
    plain(connections)
        .with_max_idle_time(Duration::from_secs(600))
        .with_wait_queue_timeout(Duration::from_secs(30))
}

/// Every connection exists and is idle.
pub(crate) async fn cenote(options: PoolOptions, counts_events: bool) -> Pool<Numbers> {
    warm(options, |builder| {
        if !counts_events {
            return builder;
        }
        let count = std::sync::atomic::AtomicU64::new(0);
        builder.on_event(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        })
    })
    .await
}

/// The same with a flight recorder, as large as it is where nothing is said.
pub(crate) async fn recorded(options: PoolOptions) -> Pool<Numbers> {
    warm(options, |builder| builder.flight_recorder(1 << 20)).await
}

async fn warm(
    options: PoolOptions,
    build: impl FnOnce(Builder<Numbers>) -> Builder<Numbers>,
) -> Pool<Numbers> {
    let address = "localhost".parse().expect("an address");
    let connections = options.max_pool_size.expect("it is set");
    let builder = build(Builder::new(address, Numbers).replace_options(options));
    let pool = builder.build().expect("good options");
    pool.ready();
    let mut all = Vec::new();
    for _ in 0..connections {
        all.push(pool.check_out().await.expect("a connection"));
    }
    drop(all);
    pool
}

impl deadpool::managed::Manager for Numbers {
    type Type = u64;
    type Error = Infallible;

    async fn create(&self) -> Result<u64, Infallible> {
        Ok(1)
    }

    async fn recycle(
        &self,
        _: &mut u64,
        _: &deadpool::managed::Metrics,
    ) -> deadpool::managed::RecycleResult<Infallible> {
        Ok(())
    }
}

pub(crate) async fn deadpool(
    connections: usize,
    wait: Option<Duration>,
) -> deadpool::managed::Pool<Numbers> {
    let pool = deadpool::managed::Pool::builder(Numbers)
        .max_size(connections)
        .wait_timeout(wait)
        .runtime(deadpool::Runtime::Tokio1)
        .build()
        .expect("good options");
    let mut all = Vec::new();
    for _ in 0..connections {
        all.push(pool.get().await.expect("a connection"));
    }
    drop(all);
    pool
}

impl bb8::ManageConnection for Numbers {
    type Connection = u64;
    type Error = Infallible;

    async fn connect(&self) -> Result<u64, Infallible> {
        Ok(1)
    }

    async fn is_valid(&self, _: &mut u64) -> Result<(), Infallible> {
        Ok(())
    }

    fn has_broken(&self, _: &mut u64) -> bool {
        false
    }
}

pub(crate) async fn bb8(connections: u32, wait: Option<Duration>) -> bb8::Pool<Numbers> {
    bb8::Pool::builder()
        .max_size(connections)
        .min_idle(connections)
        .test_on_check_out(false)
        .connection_timeout(wait.unwrap_or(Duration::from_secs(30)))
        .build(Numbers)
        .await
        .expect("it connects")
}

impl r2d2::ManageConnection for Numbers {
    type Connection = u64;
    type Error = std::io::Error;

    fn connect(&self) -> Result<u64, Self::Error> {
        Ok(1)
    }

    fn is_valid(&self, _: &mut u64) -> Result<(), Self::Error> {
        Ok(())
    }

    fn has_broken(&self, _: &mut u64) -> bool {
        false
    }
}

/// For threads.
pub(crate) fn r2d2(connections: u32) -> r2d2::Pool<Numbers> {
    r2d2::Pool::builder()
        .max_size(connections)
        .test_on_check_out(false)
        .build(Numbers)
        .expect("it connects")
}

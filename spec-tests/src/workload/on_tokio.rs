//! The tokio shell with connections that cost nothing.

use std::hint::black_box;
#[cfg(unix)]
use std::io::Read as _;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};

use cenote_core::error::ConnectionError;
use cenote_core::pool::PoolOptions;
use cenote_tokio::{Builder, Connector, HandshakeReporter, Pool, Target, Tokio};
#[cfg(unix)]
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};
use tokio::task::{JoinSet, yield_now};

#[cfg(unix)]
const SOCKET: &str = "pool.sock";

/// Connections are numbers.
#[derive(Debug)]
pub struct Numbers;

impl Connector<Tokio> for Numbers {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(&self, target: Target, _: HandshakeReporter) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

/// A pool with one idle connection, and the thread that uses it.
#[derive(Debug)]
pub struct WarmOnTokio<K: Connector<Tokio> = Numbers> {
    runtime: Runtime,
    pool: Pool<K>,
}

impl WarmOnTokio {
    /// Makes it, with a subscriber that counts events or without one.
    ///
    /// # Panics
    ///
    /// With options that contradict each other.
    #[must_use]
    pub fn new(options: PoolOptions, counts_events: bool) -> Self {
        Self::built(|builder| {
            let builder = builder.replace_options(options);
            if !counts_events {
                return builder;
            }
            let count = AtomicU64::new(0);
            builder.on_event(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
        })
    }

    /// Makes it with a flight recorder of `bytes` bytes, and without a subscriber.
    ///
    /// # Panics
    ///
    /// With options that contradict each other.
    #[must_use]
    pub fn with_flight_recorder(options: PoolOptions, bytes: usize) -> Self {
        Self::built(|builder| builder.replace_options(options).flight_recorder(bytes))
    }

    /// Makes it, with a socket for inspectors in this folder.
    ///
    /// # Panics
    ///
    /// With options that contradict each other, or when no socket can be made.
    #[cfg(unix)]
    #[must_use]
    pub fn inspectable(options: PoolOptions) -> (Self, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(SOCKET);
        (Self::built(|builder| builder.replace_options(options).inspect(&path)), folder)
    }

    /// Makes it, with an inspector that is connected as long as the second value lives.
    ///
    /// # Panics
    ///
    /// With options that contradict each other, or when no socket can be made.
    #[cfg(unix)]
    #[must_use]
    pub fn watched(options: PoolOptions) -> (Self, UnixStream) {
        let (warm, folder) = Self::inspectable(options);
        let mut inspector = UnixStream::connect(folder.path().join(SOCKET)).expect("a socket");
        // It is watched when it says something.
        inspector.read_exact(&mut [0]).expect("a greeting");
        (warm, inspector)
    }

    fn built(build: impl FnOnce(Builder<Numbers>) -> Builder<Numbers>) -> Self {
        Self::start(build(Builder::new("localhost".parse().expect("an address"), Numbers)))
    }
}

/// Has `tasks` tasks on one thread check out and in, `n` times together; each yields while it has a
/// connection.
///
/// # Panics
///
/// With options that contradict each other.
pub fn share_on_tokio(options: PoolOptions, tasks: u64, n: u64) {
    let warm = WarmOnTokio::new(options, false);
    warm.runtime.block_on(async {
        let mut all = JoinSet::new();
        for _ in 0..tasks {
            let pool = warm.pool.clone();
            all.spawn(async move {
                for _ in 0..n / tasks {
                    let connection = pool.check_out().await.expect("a connection");
                    yield_now().await;
                    drop(connection);
                }
            });
        }
        all.join_all().await;
    });
}

impl<K: Connector<Tokio>> WarmOnTokio<K> {
    /// Makes it, and opens its connection.
    ///
    /// # Panics
    ///
    /// With options that contradict each other, or when there is no connection.
    #[must_use]
    pub fn start(builder: Builder<K>) -> Self {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let pool = runtime.block_on(async {
            let pool = builder.build().expect("good options");
            pool.ready();
            drop(pool.check_out().await.expect("a connection"));
            pool
        });
        Self { runtime, pool }
    }

    /// Checks the connection out and in, so many times.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn pairs(&self, n: u64) {
        self.runtime.block_on(async {
            for _ in 0..n {
                drop(black_box(self.pool.check_out().await.expect("a connection")));
            }
        });
    }
}

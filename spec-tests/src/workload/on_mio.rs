//! The mio shell with connections that cost nothing.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use cenote_core::error::ConnectionError;
use cenote_core::pool::PoolOptions;
use cenote_mio::{Builder, Connector, EventLoop, HandshakeReporter, Pool, Target};

use super::Numbers;

impl Connector<EventLoop> for Numbers {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(&self, target: Target, _: HandshakeReporter) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

/// A pool with one idle connection, for threads.
#[derive(Debug)]
pub struct WarmOnMio<K: Connector<EventLoop> = Numbers> {
    pool: Pool<K>,
}

impl WarmOnMio {
    /// Makes it, with a subscriber that counts events or without one.
    ///
    /// # Panics
    ///
    /// With options that contradict each other.
    #[must_use]
    pub fn new(options: PoolOptions, counts_events: bool) -> Self {
        let address = "localhost".parse().expect("an address");
        let mut builder = Builder::new(address, Numbers).replace_options(options);
        if counts_events {
            let count = AtomicU64::new(0);
            builder = builder.on_event(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        Self::start(builder)
    }
}

impl<K: Connector<EventLoop>> WarmOnMio<K> {
    /// Makes it, and opens its connection.
    ///
    /// # Panics
    ///
    /// With options that contradict each other, or when there is no connection.
    #[must_use]
    pub fn start(builder: Builder<K>) -> Self {
        let pool = builder.build().expect("good options");
        pool.ready();
        drop(pool.check_out().expect("a connection"));
        // Waits until the loop's thread has emitted its events.
        pool.while_quiet(|| ());
        Self { pool }
    }

    /// Checks the connection out and in, so many times.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn pairs(&self, n: u64) {
        for _ in 0..n {
            drop(black_box(self.pool.check_out().expect("a connection")));
        }
    }
}

/// Its thread has ended then, and does not allocate during another measurement.
impl<K: Connector<EventLoop>> Drop for WarmOnMio<K> {
    fn drop(&mut self) {
        self.pool.close();
    }
}

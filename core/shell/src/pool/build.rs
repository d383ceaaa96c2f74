use std::sync::Arc;

#[cfg(feature = "tls")]
use cenote_core::connect::DriverInfo;

use super::driver::{Observers, PoolDriver};
use super::handle::Pool;
use super::inner::PoolInner;
use super::timer;
#[cfg(feature = "tls")]
use crate::builder::Builder;
use crate::builder::{BuildError, BuiltPool, PoolPlan};
use crate::connection::Connector;
#[cfg(feature = "tls")]
use crate::connection::MongoConnector;
use crate::event::{PoolEvent, Subscribers};
#[cfg(feature = "tls")]
use crate::runtime::Network;
use crate::runtime::{CurrentRuntime, Runtime};
use crate::trace;

impl<R: Runtime, K: Connector<R>> Pool<R, K> {
    /// Makes a pool that lives on `runtime`, as a [`Builder`] was told.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a file or folder for traces that cannot be made.
    pub fn start(mut plan: PoolPlan<K>, runtime: R) -> Result<Self, BuildError> {
        let (state, first, traces) = plan.begin(R::PROGRAM)?;
        let measured = plan.measure(R::now);
        let PoolPlan {
            address,
            connector,
            subscribers,
            log,
            failure_handler,
            leak_callback,
            event_queue,
            timeout,
            ..
        } = plan;
        let subscribers = Subscribers::new(subscribers, log);
        let observers = Observers { subscribers, failure_handler, leak_callback, traces };
        let inner = PoolInner::new(state, first, event_queue);
        let driver = PoolDriver::new(address, connector, timeout, observers, runtime, inner);
        trace::watch(&driver);
        let pool = Arc::downgrade(&driver);
        measured.observe(move || Some(pool.upgrade()?.snapshot()));
        timer::start(&driver, 0);
        Ok(Self::new(driver))
    }
}

impl<R: CurrentRuntime, K: Connector<R>> BuiltPool for Pool<R, K> {
    type Connector = K;
    type EventSender = R::EventSender;

    fn build(plan: PoolPlan<K>) -> Result<Self, BuildError> {
        Self::start(plan, R::current())
    }

    fn send(sender: &R::EventSender, event: PoolEvent) {
        R::send_event(sender, event);
    }
}
#[cfg(feature = "tls")]
impl<R: CurrentRuntime + Network> Pool<R, MongoConnector<R>> {
    /// A pool for the first host of a connection string, with its options.
    ///
    /// # Errors
    ///
    /// An invalid connection string, or a file named in it that cannot be read.
    ///
    /// # Panics
    ///
    /// Outside of the runtime.
    ///
    /// ```no_run
    /// use cenote_tokio::Pool;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::connect_to("mongodb://app:pencil@db.example.com/?tls=true&maxPoolSize=20")?;
    /// pool.ready();
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_to(uri: &str) -> Result<Self, BuildError> {
        Self::builder(uri)?.build()
    }

    /// A builder for such a pool, to set more than the connection string says.
    ///
    /// # Errors
    ///
    /// An invalid connection string, or a file named in it that cannot be read.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use cenote_tokio::Pool;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::builder("mongodb://db.example.com/?maxPoolSize=20")?
    ///     .map_options(|options| options.with_max_lifetime(Duration::from_secs(600)))
    ///     .on_event(|event| println!("{event}"))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(uri: &str) -> Result<Builder<Self>, BuildError> {
        Builder::from_uri(uri)
    }

    /// Appends the metadata of a driver or library that uses this pool to the handshake of connections
    /// that are opened from now on: [`MongoConnector::append_metadata`].
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.driver().connector().append_metadata(driver)
    }
}

#[cfg(feature = "tls")]
use cenote_core::connect::DriverInfo;
#[cfg(feature = "tls")]
use cenote_core::error::ConnectionError;
#[cfg(feature = "tls")]
use cenote_core::pool::Input;
#[cfg(feature = "tls")]
use cenote_core::uri::Credential;

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
#[cfg(unix)]
use crate::inspect::Inspector;
#[cfg(feature = "tls")]
use crate::runtime::Network;
use crate::runtime::origin::Origin;
use crate::runtime::{CurrentRuntime, Runtime};
use crate::trace;

impl<R: Runtime, K: Connector<R>> Pool<R, K> {
    /// Makes a pool that lives on `runtime`, as a [`Builder`] was told.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a file or folder for traces that cannot be made; what the connector
    /// [finds wrong](Connector::check) with its own settings.
    pub fn start(plan: PoolPlan<K>, runtime: R) -> Result<Self, BuildError> {
        let pool = Self::start_untold(plan, runtime)?;
        pool.driver().tell_pending();
        Ok(pool)
    }

    /// The same, but subscribers are not told yet of what has happened: `ConnectionPoolCreated`.
    pub(crate) fn start_untold(mut plan: PoolPlan<K>, runtime: R) -> Result<Self, BuildError> {
        plan.connector.check()?;
        let now = R::now();
        let origin = plan.origin.unwrap_or_else(|| Origin::new(now));
        let (state, first, traces) = plan.begin(R::PROGRAM, origin, now)?;
        let measured = plan.measure(R::now);
        let PoolPlan {
            #[cfg(unix)]
            inspect,
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
        let observers = Observers {
            subscribers,
            failure_handler,
            leak_callback,
            traces,
            measured: measured.clone(),
        };
        let inner = PoolInner::new(state, first, event_queue);
        let driver =
            PoolDriver::new(address, connector, timeout, observers, runtime, origin, inner);
        trace::watch(&driver);
        measured.observe(&driver);
        #[cfg(unix)]
        let inspector = match &inspect {
            Some(path) => Some(Inspector::start(path, R::PROGRAM, [driver.inspected()])?),
            None => None,
        };
        timer::start(&driver, 0);
        Ok(Self::new(
            driver,
            #[cfg(unix)]
            inspector,
        ))
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
    /// An invalid connection string.
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
}

/// What changes for connections that are opened from now on.
#[cfg(feature = "tls")]
impl<R: Network> Pool<R, MongoConnector<R>> {
    /// Appends the metadata of a driver or library that uses this pool to the handshake of connections
    /// that are opened from now on: [`MongoConnector::append_metadata`].
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.driver().connector().append_metadata(driver)
    }

    /// Changes the user or the password without an outage, such as before the old password expires: connections are
    /// opened with `credential` from now on, and those that exist retire. Idle ones are closed at once, with the
    /// reason `idle`; those in use when they are checked in. The pool is not cleared, and no check-out fails: callers
    /// that wait get new connections.
    ///
    /// Returns at once. [`Snapshot`](cenote_core::pool::Snapshot) tells how many connections there are; the old ones
    /// are gone when those that were checked out before this call are checked in.
    ///
    /// # Errors
    ///
    /// A mechanism that is not supported, or a credential that it cannot use; nothing changes then. Whether the server
    /// accepts it, the next connection tells.
    ///
    /// ```no_run
    /// use cenote_tokio::Credential;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// pool.replace_credential(Credential::of_user("app", "n3w s3cret", "admin"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        self.driver().connector().replace_credential(credential)?;
        self.driver().feed(Input::RetireConnections);
        Ok(())
    }
}

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{Input, InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};

use super::check_out::{CheckOut, Until};
use super::driver::PoolDriver;
use super::guard::PooledConnection;
use crate::connection::Connector;
#[cfg(unix)]
use crate::inspect::Inspector;
use crate::runtime::Runtime;

/// A pool of connections to one server. A clone is the same pool; when the last one is dropped, it
/// closes.
///
/// A new pool is paused: it hands out no connection until it is marked [`ready`](Self::ready), and again
/// after each [`clear`](Self::clear). A [`Client`](crate::client::Client) does both by monitoring its servers.
pub struct Pool<R: Runtime, K: Connector<R>> {
    handle: Arc<Handle<R, K>>,
}

/// Closes the pool with the last handle.
struct Handle<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    #[cfg(unix)]
    inspector: Option<Inspector>,
}

impl<R: Runtime, K: Connector<R>> Pool<R, K> {
    pub(super) fn new(
        driver: Arc<PoolDriver<R, K>>,
        #[cfg(unix)] inspector: Option<Inspector>,
    ) -> Self {
        let handle = Handle {
            driver,
            #[cfg(unix)]
            inspector,
        };
        Self { handle: Arc::new(handle) }
    }

    /// Another handle of a pool that is closed, and that no inspector of its own shows.
    #[cfg(feature = "tls")]
    pub(crate) fn of_driver(driver: Arc<PoolDriver<R, K>>) -> Self {
        Self::new(
            driver,
            #[cfg(unix)]
            None,
        )
    }

    /// Marks the pool ready: the server is there, and connections may be made and handed out. Does nothing
    /// on a pool that is ready or closed.
    ///
    /// ```no_run
    /// use cenote_tokio::Pool;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::connect_to("mongodb://db.example.com")?;
    /// pool.ready(); // It was paused.
    /// let connection = pool.check_out().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ready(&self) {
        self.driver().feed(Input::Ready);
    }

    /// Clears the pool: connections that were made before are not handed out any more, callers that wait
    /// get an error, and the pool pauses until it is marked [`ready`](Self::ready) again. With `interrupt`,
    /// connections in use are interrupted.
    ///
    /// # Panics
    ///
    /// In load-balanced mode, where a [service](Self::clear_service) is cleared.
    pub fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.driver().feed(Input::Clear { cause, interrupt, service: None });
    }

    /// Clears one service behind a load balancer. The pool stays ready.
    ///
    /// # Panics
    ///
    /// When the pool is not in load-balanced mode.
    pub fn clear_service(&self, cause: ConnectionError, service: ServiceId) {
        self.driver().feed(Input::Clear { cause, interrupt: false, service: Some(service) });
    }

    /// Closes each connection that no caller uses or waits for, with the reason `idle`, before the process is frozen:
    /// the server need not keep them between two invocations of a function, and a firewall does not cut them
    /// meanwhile. Connections in use and callers do not notice. `minPoolSize` is left alone for a second, as after a
    /// failed establishment, which is the time to be frozen in.
    ///
    /// Neither blocks nor waits for the network. `docs/functions.md` has the whole recipe.
    pub fn release_idle(&self) {
        self.driver().feed(Input::ReleaseIdle);
    }

    /// Replaces the options of the running pool. What is not set takes its default; change
    /// [`options`](Self::options) to keep the others.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; nothing changes then.
    ///
    /// # Panics
    ///
    /// When `loadBalanced` changes.
    ///
    /// ```no_run
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// pool.set_options(pool.options().with_max_pool_size(50))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions> {
        self.driver().set_options(options)
    }

    /// The options as they were set; with a seed of the pool's own, if lifetimes are limited and none was
    /// set, and with the [default threshold](crate::pool::leak::DEFAULT_LEAK_DETECTION_THRESHOLD) for leaks, if there
    /// is a callback for them and none was set.
    #[must_use]
    pub fn options(&self) -> PoolOptions {
        self.driver().options()
    }

    /// How many events were dropped because a subscriber blocks: [`Builder::event_queue`].
    ///
    /// [`Builder::event_queue`]: crate::builder::Builder::event_queue
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.driver().dropped_events()
    }

    /// The state and the counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.driver().snapshot()
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.driver().address()
    }

    /// Says how long a round trip to the server takes at least. A command with a limit of time is sent only if more
    /// is left of it, and the server gets that much less, so that its answer comes in time. Zero, which is the start,
    /// is for "not known".
    ///
    /// A [`Client`](crate::client::Client) says it after each check of its monitor: the least of the last ten. A
    /// driver with monitors of its own calls this.
    pub fn set_min_round_trip(&self, time: Duration) {
        self.driver().set_min_round_trip(time);
    }

    /// Removes the socket of [`Builder::inspect`](crate::builder::Builder::inspect). Closing the pool does so,
    /// once there is nothing left to wait for.
    pub fn end_inspection(&self) {
        #[cfg(unix)]
        self.handle.inspector.iter().for_each(Inspector::close);
    }

    /// The pool without its handle, for shells with a face of their own.
    #[must_use]
    pub fn driver(&self) -> &Arc<PoolDriver<R, K>> {
        &self.handle.driver
    }
}

/// Check-outs of asynchronous callers.
impl<R: Runtime<Waiter = Waker>, K: Connector<R>> Pool<R, K> {
    /// Checks a connection out: one that is available, a new one, or, for a caller that has to wait, the
    /// one that comes first. Callers are served in their order.
    ///
    /// Waits for its turn and for a connection that is made for it for `timeoutMS` at most. Without that option it
    /// waits for its turn for `waitQueueTimeoutMS`, and without limit if there is none either.
    /// Cancel-safe: dropping the future leaves the wait queue and never loses a connection.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused, closed or was cleared, the time ran out, or the connection that
    /// was made for this check-out failed.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out().await?;
    /// let reply = connection.command("shop", &rawdoc! { "find": "orders", "limit": 3 }).await?;
    /// println!("{reply:?}");
    /// drop(connection); // Checks it in, without waiting.
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn check_out(
        &self,
    ) -> impl Future<Output = Result<PooledConnection<R, K>, PoolError>> + Send {
        self.check_out_at(Location::caller(), Purpose::Other, Until::Timeout)
    }

    /// As [`check_out`](Self::check_out), but gives up at `deadline`, whatever `timeoutMS` and `waitQueueTimeoutMS` say. The
    /// deadline covers a connection that is made for this check-out, too.
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use tokio::time::Instant;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// match pool.check_out_before(Instant::now() + Duration::from_millis(200)).await {
    ///     Ok(connection) => println!("connection {}", connection.id()),
    ///     Err(error) if error.is_timeout() => eprintln!("{error}"), // Timed out while checking out …
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn check_out_before(
        &self,
        deadline: R::Instant,
    ) -> impl Future<Output = Result<PooledConnection<R, K>, PoolError>> + Send {
        self.check_out_at(
            Location::caller(),
            Purpose::Other,
            Until::Deadline(Some(deadline.into())),
        )
    }

    /// As [`check_out_before`](Self::check_out_before), and says what the connection is for: cursors and
    /// transactions pin theirs in load-balanced mode, and are counted.
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_core::pool::Purpose;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out_for(Purpose::Cursor, None).await?;
    /// let reply = connection.command("shop", &rawdoc! { "find": "orders" }).await?;
    /// println!("{reply:?}"); // The connection stays checked out until the cursor is exhausted.
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn check_out_for(
        &self,
        purpose: Purpose,
        deadline: Option<R::Instant>,
    ) -> impl Future<Output = Result<PooledConnection<R, K>, PoolError>> + Send {
        let until = deadline.map_or(Until::Timeout, |at| Until::Deadline(Some(at.into())));
        self.check_out_at(Location::caller(), purpose, until)
    }

    /// Checks a connection out, runs an operation on it, and checks it in.
    ///
    /// # Errors
    ///
    /// That of the check-out, or of `operation`.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_tokio::ClientError;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let reply = pool.with_connection(async |connection| {
    ///     let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await?;
    ///     Ok::<_, ClientError>(reply)
    /// });
    /// println!("{:?}", reply.await?);
    /// # Ok(())
    /// # }
    /// ```
    // WC-01
    #[track_caller]
    pub fn with_connection<T, E: From<PoolError>>(
        &self,
        operation: impl AsyncFnOnce(&mut PooledConnection<R, K>) -> Result<T, E>,
    ) -> impl Future<Output = Result<T, E>> {
        let check_out = self.check_out();
        async move {
            let mut connection = check_out.await?;
            operation(&mut connection).await
        }
    }

    pub(crate) fn check_out_at(
        &self,
        caller: &'static Location<'static>,
        purpose: Purpose,
        until: Until,
    ) -> CheckOut<'_, R, K> {
        CheckOut::new(self.driver(), purpose, until, caller)
    }
}

impl<R: Runtime, K: Connector<R>> Clone for Pool<R, K> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<R: Runtime, K: Connector<R>> fmt::Debug for Pool<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("address", self.address())
            .field("snapshot", &self.snapshot().to_string())
            .finish_non_exhaustive()
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Handle<R, K> {
    fn drop(&mut self) {
        // In a child process the pool is the parent's to close.
        if !self.driver.is_inherited() {
            self.driver.close();
            self.driver.runtime.stop_timer();
        }
    }
}

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Instant;

use cenote_core::address::ServerAddress;
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{Input, InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot, Status};
use cenote_shell::platform;

use crate::builder::{BuildError, Builder};
use crate::connection::MongoConnector;
use crate::connector::Connector;
use crate::fork::{self, ForkError};
use crate::guard::PooledConnection;
use crate::request::{Request, take_over};
use crate::shared::Shared;
use crate::timer::TIMER;

/// A pool of connections to one server. A clone is the same pool; when the last one is dropped, it
/// closes.
///
/// A pool begins paused (PCR-04): nothing is handed out until somebody who watches the server says
/// [`ready`](Self::ready), and again after each [`clear`](Self::clear).
pub struct Pool<K: Connector = MongoConnector> {
    life: Arc<Life<K>>,
}

/// Ends with the last handle.
struct Life<K: Connector> {
    shared: Arc<Shared<K>>,
}

impl Pool {
    /// A pool for the first host of a connection string, with its options.
    ///
    /// # Errors
    ///
    /// A connection string that is none, or files of it that cannot be read; no event loop, or no
    /// thread, to be had.
    pub fn connect_to(uri: &str) -> Result<Self, BuildError> {
        Builder::from_uri(uri)?.build()
    }

    /// A pool as a connection string says, with more besides.
    ///
    /// # Errors
    ///
    /// A connection string that is none, or files of it that cannot be read.
    pub fn builder(uri: &str) -> Result<Builder<MongoConnector>, BuildError> {
        Builder::from_uri(uri)
    }

    /// Tells servers of a driver or library that uses this pool, too, on connections that are opened
    /// from now on: [`MongoConnector::append_metadata`].
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.shared().connector.append_metadata(driver)
    }
}

impl<K: Connector> Pool<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>) -> Self {
        Self { life: Arc::new(Life { shared }) }
    }

    /// Checks a connection out: one that is available, or a new one, or whatever comes first for
    /// who has to wait, in the order of asking (OUT-01 …).
    ///
    /// Blocks for `waitQueueTimeoutMS` at most until its turn comes, and without limit if there is
    /// none; then for as long as a connection that is made for this request may take.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused, closed or was cleared, the time ran out, or the connection
    /// that was made for this request failed.
    #[track_caller]
    pub fn check_out(&self) -> Result<PooledConnection<K>, PoolError> {
        self.check_out_for(Purpose::Other, None)
    }

    /// As [`check_out`](Self::check_out), but gives up at `deadline`, whatever `waitQueueTimeoutMS`
    /// says (CS-02, CS-07). The deadline covers a connection that is made for this request, too.
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    #[track_caller]
    pub fn check_out_before(&self, deadline: Instant) -> Result<PooledConnection<K>, PoolError> {
        self.check_out_for(Purpose::Other, Some(deadline))
    }

    /// As [`check_out_before`](Self::check_out_before), and says what the connection is for: cursors
    /// and transactions pin theirs in load-balanced mode, and are counted (LB-06).
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    #[track_caller]
    pub fn check_out_for(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<PooledConnection<K>, PoolError> {
        self.check_out_at(Location::caller(), purpose, deadline)
    }

    pub(crate) fn check_out_at(
        &self,
        place: &'static Location<'static>,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<PooledConnection<K>, PoolError> {
        let shared = self.shared();
        let delivery = match Request::new(shared, purpose, deadline) {
            Ok(delivery) => delivery,
            Err(request) => request.wait(deadline.or_else(|| shared.end_of_wait())),
        };
        take_over(shared, delivery, place)
    }

    /// Checks a connection out, does something with it, and checks it in.
    ///
    /// # Errors
    ///
    /// That of the check-out, or of `operation`.
    #[track_caller]
    pub fn with_connection<R, E: From<PoolError>>(
        &self,
        operation: impl FnOnce(&mut PooledConnection<K>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut connection = self.check_out()?;
        operation(&mut connection)
    }

    /// The server is there: connections may be made and handed out (PRD-01). Does nothing on a pool
    /// that is ready or closed.
    pub fn ready(&self) {
        self.shared().feed(Input::Ready);
    }

    /// The server is not as it was: no connection that was made before is handed out any more, and
    /// the pool pauses until it is [`ready`](Self::ready) again (CLR-01). With `interrupt`,
    /// connections in use are broken off (INT-01).
    ///
    /// # Panics
    ///
    /// In load-balanced mode, where a [service](Self::clear_service) is cleared.
    pub fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.shared().feed(Input::Clear { cause, interrupt, service: None });
    }

    /// One service behind the load balancer is not as it was (CLB-01). The pool stays ready.
    ///
    /// # Panics
    ///
    /// When the pool is not in load-balanced mode.
    pub fn clear_service(&self, cause: ConnectionError, service: ServiceId) {
        self.shared().feed(Input::Clear { cause, interrupt: false, service: Some(service) });
    }

    /// Changes options of the running pool. What is not set takes its default.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; nothing changes then.
    ///
    /// # Panics
    ///
    /// When `loadBalanced` changes.
    pub fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions> {
        options.validate()?;
        let options = platform::with_jitter_seed_from_os(options);
        self.shared().holders.set_options(&options);
        self.shared().feed(Input::SetOptions { options: Box::new(options) });
        Ok(())
    }

    /// The options as they were set; with a seed of the pool's own, if lifetimes are limited and none
    /// was set.
    #[must_use]
    pub fn options(&self) -> PoolOptions {
        self.shared().options()
    }

    /// The state and the counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared().snapshot()
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.shared().address
    }

    /// Does something while no thread is in the midst of a change to the pool, such as to `fork`:
    /// otherwise a child process may inherit a lock that nobody gives back. Blocks until the event
    /// loop has finished its turn. `work` must not use the pool; neither may this be called by a
    /// subscriber of the pool.
    pub fn while_quiet<R>(&self, work: impl FnOnce() -> R) -> R {
        fork::while_quiet(self.shared(), work)
    }

    /// Goes on in a child process, with a thread for the event loop of its own and without any
    /// connection (FK-01, FK-04). To be called there before anything else is done with the pool. Not
    /// a byte is sent on the parent's sockets: they are closed here, and stay open there. Guards that
    /// were held at the fork are of no use: what is done with them fails as interrupted. Does nothing
    /// in the process that the pool lives in.
    ///
    /// Until then a child is told when it asks for more than there is: connections cannot be opened,
    /// and commands on the parent's fail as interrupted.
    ///
    /// The state stays as it is; no monitor would make a child's pool ready again (T-74).
    ///
    /// # Errors
    ///
    /// No event loop, or no thread, to be had; or a lock was held by a thread that does not exist in
    /// this process: fork within [`while_quiet`](Self::while_quiet).
    pub fn reset_after_fork(&self) -> Result<(), ForkError> {
        fork::reset(self.shared())
    }

    /// Closes the pool, and waits for nothing.
    pub(crate) fn begin_to_close(&self) {
        self.life.close();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<K>> {
        &self.life.shared
    }
}

impl<K: Connector> Life<K> {
    fn close(&self) {
        if self.shared.snapshot().status != Status::Closed {
            self.shared.feed(Input::Close);
            // The timer ends when it sees this, and the thread of the loop when all have ended.
            let event_loop = self.shared.lock().event_loop.clone();
            event_loop.call(TIMER);
        }
    }
}

impl<K: Connector> Clone for Pool<K> {
    fn clone(&self) -> Self {
        Self { life: Arc::clone(&self.life) }
    }
}

impl<K: Connector> fmt::Debug for Pool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("address", &self.shared().address)
            .field("snapshot", &self.snapshot().to_string())
            .finish_non_exhaustive()
    }
}

impl<K: Connector> Drop for Life<K> {
    fn drop(&mut self) {
        self.close();
    }
}

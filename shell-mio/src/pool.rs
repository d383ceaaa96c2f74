use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{Input, InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot, Status};

use crate::builder::{BuildError, Builder};
use crate::connection::Mongo;
use crate::connector::Connector;
use crate::desk::{Delivery, Waiter};
use crate::drainer::Drainer;
use crate::error::StillOut;
use crate::guard::PooledConnection;
use crate::parker::Parker;
use crate::request::Request;
use crate::shared::Shared;
use crate::{fork, thread};

/// A pool of connections to one server. A clone is the same pool; when the last one is dropped, it
/// closes.
///
/// A pool begins paused (PCR-04): nothing is handed out until somebody who watches the server says
/// [`ready`](Self::ready), and again after each [`clear`](Self::clear).
pub struct Pool<K: Connector = Mongo> {
    shared: Arc<Shared<K>>,
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
    pub fn builder(uri: &str) -> Result<Builder<Mongo>, BuildError> {
        Builder::from_uri(uri)
    }
}

impl<K: Connector> Pool<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>) -> Self {
        let life = Arc::new(Life { shared: Arc::clone(&shared) });
        Self { shared, life }
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
    pub fn check_out(&self) -> Result<PooledConnection<K>, PoolError> {
        self.check_out_for(Purpose::Other, None)
    }

    /// As [`check_out`](Self::check_out), but gives up at `deadline`, whatever `waitQueueTimeoutMS`
    /// says (CS-02, CS-07). The deadline covers a connection that is made for this request, too.
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    pub fn check_out_before(&self, deadline: Instant) -> Result<PooledConnection<K>, PoolError> {
        self.check_out_for(Purpose::Other, Some(deadline))
    }

    /// As [`check_out_before`](Self::check_out_before), and says what the connection is for: cursors
    /// and transactions pin theirs in load-balanced mode, and are counted (LB-06).
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    pub fn check_out_for(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<PooledConnection<K>, PoolError> {
        let shared = &self.shared;
        let delivery = match shared.request(deadline, purpose, || Waiter::Thread(Parker::mine())) {
            Ok(delivery) => delivery,
            Err((place, id)) => {
                let deadline = deadline.or_else(|| shared.end_of_wait());
                Request { shared, place, id, is_answered: false }.wait(deadline)
            }
        };
        self.guard(delivery)
    }

    /// A connection if one is available at this moment; `None` if not. Never blocks, starts no
    /// connection, and takes nothing from those who wait: their turn comes first.
    ///
    /// It is told as a check-out whose deadline is now: with `None` as one that failed by timeout.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused or closed.
    pub fn try_check_out(&self) -> Result<Option<PooledConnection<K>>, PoolError> {
        match self.check_out_before(Instant::now()) {
            Ok(connection) => Ok(Some(connection)),
            Err(error) if error.is_timeout() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes `connections` connections, or as many as the pool may have, and has them available.
    /// Blocks until they are there. Unlike `minPoolSize` it does so once, now, and says what went
    /// wrong. Connections that others use meanwhile are waited for.
    ///
    /// # Errors
    ///
    /// That of the first check-out that fails; what was made until then stays.
    pub fn warm_up(&self, connections: u32) -> Result<(), PoolError> {
        let shared = &self.shared;
        let most = shared.snapshot().max_pool_size.unwrap_or(connections);
        // All of them before any is waited for, so that they are made side by side.
        let ask = |_| {
            let waiter = || Waiter::Thread(Parker::mine());
            let answer = shared.request(None, Purpose::Other, waiter);
            answer.map(|delivery| self.guard(delivery)).map_err(|(place, id)| Request {
                shared,
                place,
                id,
                is_answered: false,
            })
        };
        let asked: Vec<_> = (0..connections.min(most)).map(ask).collect();
        let deadline = shared.end_of_wait();
        let mut made = Vec::with_capacity(asked.len());
        for answer in asked {
            let waited = |request: Request<'_, K>| self.guard(request.wait_in_turn(deadline));
            made.push(answer.unwrap_or_else(waited)?);
        }
        Ok(())
    }

    /// Checks a connection out, does something with it, and checks it in.
    ///
    /// # Errors
    ///
    /// That of the check-out, or of `operation`.
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
        self.shared.feed(Input::Ready);
    }

    /// The server is not as it was: no connection that was made before is handed out any more, and
    /// the pool pauses until it is [`ready`](Self::ready) again (CLR-01). With `interrupt`,
    /// connections in use are broken off (CLR-30).
    ///
    /// # Panics
    ///
    /// In load-balanced mode, where a [service](Self::clear_service) is cleared.
    pub fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.shared.feed(Input::Clear { cause, interrupt, service: None });
    }

    /// One service behind the load balancer is not as it was (CLR-10). The pool stays ready.
    ///
    /// # Panics
    ///
    /// When the pool is not in load-balanced mode.
    pub fn clear_service(&self, cause: ConnectionError, service: ServiceId) {
        self.shared.feed(Input::Clear { cause, interrupt: false, service: Some(service) });
    }

    /// Closes the pool for good. Blocks until everything that is checked out has come home (PCL-01),
    /// every socket is closed, and the thread of the event loop has ended.
    ///
    /// A subscriber who closes the pool that it is told about does not wait.
    pub fn close(&self) {
        let closed = self.close_by(None);
        debug_assert!(closed.is_ok() || Drainer::is_here(&self.shared), "there is no limit");
    }

    /// As [`close`](Self::close), but waits until `deadline` at most. The pool is closed in any
    /// case, and what comes back later is closed then.
    ///
    /// # Errors
    ///
    /// How many connections have not come back.
    pub fn close_before(&self, deadline: Instant) -> Result<(), StillOut> {
        self.close_by(Some(deadline))
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
        self.shared.feed(Input::SetOptions { options: Box::new(options) });
        Ok(())
    }

    /// The options as they were set.
    #[must_use]
    pub fn options(&self) -> PoolOptions {
        self.shared.options()
    }

    /// The state and the counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.shared.address
    }

    /// Does something while no thread is in the midst of a change to the pool, such as to `fork`:
    /// otherwise a child process may inherit a lock that nobody gives back. Blocks until the event
    /// loop has finished its turn. `work` must not use the pool; neither may this be called by a
    /// subscriber of the pool.
    pub fn while_quiet<R>(&self, work: impl FnOnce() -> R) -> R {
        fork::while_quiet(&self.shared, work)
    }

    /// Goes on in a child process, with a thread for the event loop of its own and without any
    /// connection (FK-01, FK-04). To be called there before anything else is done with the pool. Not
    /// a byte is sent on the parent's sockets: they are closed here, and stay open there. Guards that
    /// were held at the fork are of no use: what is done with them fails as interrupted.
    ///
    /// The state stays as it is; no monitor would make a child's pool ready again (T-74).
    ///
    /// # Errors
    ///
    /// No event loop, or no thread, to be had; or a lock was held by a thread that does not exist in
    /// this process: fork within [`while_quiet`](Self::while_quiet).
    pub fn reset_after_fork(&self) -> Result<(), BuildError> {
        fork::reset(&self.shared)
    }

    /// Closes the pool, and waits for nothing.
    pub(crate) fn begin_to_close(&self) {
        self.life.close();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<K>> {
        &self.shared
    }

    pub(crate) fn guard(&self, delivery: Delivery<K>) -> Result<PooledConnection<K>, PoolError> {
        match delivery {
            Ok((id, held)) => Ok(PooledConnection::new(Arc::clone(&self.shared), id, held)),
            Err(error) => Err(PoolError::new(Arc::clone(&self.shared.address), error)),
        }
    }

    fn close_by(&self, deadline: Option<Instant>) -> Result<(), StillOut> {
        let Self { shared, life } = self;
        life.close();
        // What this thread is in the midst of would not go on while it waits.
        let is_subscriber = Drainer::is_here(shared);
        let mut desk = shared.lock();
        loop {
            let out = desk.state.snapshot().total;
            if out == 0 && (desk.interrupts.is_empty() || is_subscriber) {
                break;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if is_subscriber || left.is_some_and(|left| left.is_zero()) {
                return Err(StillOut { connections: out });
            }
            desk = match left {
                None => shared.emptied.wait(desk).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = shared.emptied.wait_timeout(desk, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        drop(desk);
        if !is_subscriber {
            thread::join(shared);
        }
        Ok(())
    }
}

impl<K: Connector> Life<K> {
    fn close(&self) {
        if self.shared.snapshot().status != Status::Closed {
            self.shared.feed(Input::Close);
            // The thread of the loop ends when it sees this.
            let event_loop = self.shared.lock().event_loop.clone();
            event_loop.nudge();
        }
    }
}

impl<K: Connector> Clone for Pool<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), life: Arc::clone(&self.life) }
    }
}

impl<K: Connector> fmt::Debug for Pool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("address", &self.shared.address)
            .field("snapshot", &self.snapshot().to_string())
            .finish_non_exhaustive()
    }
}

impl<K: Connector> Drop for Life<K> {
    fn drop(&mut self) {
        self.close();
    }
}

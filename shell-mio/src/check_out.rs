//! Check-outs that block the calling thread.

use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use cenote_core::error::PoolError;
use cenote_core::pool::{Input, Purpose};
use cenote_shell::pool::warm_up_plan::{is_in_vain, to_ask};
use cenote_shell::pool::{PoolDriver, Until, WaiterKey};
use parking::Parker;

use crate::Connector;
use crate::event_loop::{EventLoop, Waiter};
use crate::pool::Pool;
use crate::pooled_connection::PooledConnection;

thread_local! {
    /// `std::thread::park` would do, but the application uses its token, too.
    static PARKER: Rc<Parker> = Rc::default();
}

/// The parker of this thread. A wake-up for an earlier wait may be left in it.
fn parker() -> Rc<Parker> {
    // A thread that is ending has lost it.
    PARKER.try_with(Rc::clone).unwrap_or_default()
}

impl<K: Connector<EventLoop>> Pool<K> {
    /// Checks out a connection: an available one, a new one, or the next one that becomes available.
    /// Callers that wait are served in the order in which they asked.
    ///
    /// Blocks until it has a connection, for `timeoutMS` at most. Without that option it blocks until its turn
    /// comes, for `waitQueueTimeoutMS` at most (without limit by default), and then for as long as a connection
    /// that is opened for it takes.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused, closed or was cleared, the time ran out, or the connection that
    /// was opened for this check-out failed.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    ///
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out()?; // Blocks.
    /// let reply = connection.command("shop", &rawdoc! { "find": "orders", "limit": 3 })?;
    /// println!("{reply:?}");
    /// drop(connection); // Checks it in, without waiting.
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn check_out(&self) -> Result<PooledConnection<K>, PoolError> {
        self.check_out_for(Purpose::Other, None)
    }

    /// As [`check_out`](Self::check_out), but fails at `deadline`, whatever `timeoutMS` and `waitQueueTimeoutMS` are. The
    /// deadline also covers a connection that is opened for this check-out.
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    ///
    /// ```no_run
    /// use std::time::{Duration, Instant};
    ///
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// match pool.check_out_before(Instant::now() + Duration::from_millis(200)) {
    ///     Ok(connection) => println!("connection {}", connection.id()),
    ///     Err(error) if error.is_timeout() => eprintln!("{error}"), // Timed out while checking out …
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn check_out_before(&self, deadline: Instant) -> Result<PooledConnection<K>, PoolError> {
        self.check_out_for(Purpose::Other, Some(deadline))
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
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out_for(Purpose::Cursor, None)?;
    /// let reply = connection.command("shop", &rawdoc! { "find": "orders" })?;
    /// println!("{reply:?}"); // The connection stays checked out until the cursor is exhausted.
    /// # Ok(())
    /// # }
    /// ```
    // CS-19
    #[track_caller]
    pub fn check_out_for(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<PooledConnection<K>, PoolError> {
        let until = deadline.map_or(Until::Timeout, |deadline| Until::Deadline(Some(deadline)));
        check_out(self.driver(), Location::caller(), purpose, until)
    }

    /// Checks out a connection, calls `operation` with it, and checks it in.
    ///
    /// # Errors
    ///
    /// That of the check-out, or of `operation`.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_mio::ClientError;
    ///
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let reply = pool.with_connection(|connection| {
    ///     let reply = connection.command("admin", &rawdoc! { "ping": 1 })?;
    ///     Ok::<_, ClientError>(reply)
    /// })?;
    /// println!("{reply:?}");
    /// # Ok(())
    /// # }
    /// ```
    // WC-01
    #[track_caller]
    pub fn with_connection<R, E: From<PoolError>>(
        &self,
        operation: impl FnOnce(&mut PooledConnection<K>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut connection = self.check_out()?;
        operation(&mut connection)
    }

    /// Checks out a connection if one is available now. Never waits, and never opens one: returns `None`
    /// where [`check_out`](Self::check_out) would. While other callers wait, nothing is available: they
    /// go first. A new pool has no connections before a check-out, [`warm_up`](Self::warm_up) or
    /// `minPoolSize` opens some.
    ///
    /// Events and logs show it as a check-out whose timeout is zero. Blocks for no longer than the pool's
    /// lock is held and [subscribers](crate::Builder::on_event) take. Allocates if nothing is available.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused or closed.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    ///
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// // Only while a connection is idle.
    /// if let Some(mut connection) = pool.try_check_out()? {
    ///     connection.command("shop", &rawdoc! { "collStats": "orders" })?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn try_check_out(&self) -> Result<Option<PooledConnection<K>>, PoolError> {
        let guard = self.driver().try_check_out(Location::caller())?;
        Ok(guard.map(PooledConnection::new))
    }

    /// Opens connections until that many are idle or the pool is full (`maxPoolSize`). Returns how many
    /// it had together in the end: idle connections count, connections in use do not. Blocks until then.
    ///
    /// For a service that wants its connections before its first request, and an error if there is no
    /// server. `minPoolSize` is maintained in the background instead, for as long as the pool lives, and
    /// reports no errors. Connections beyond the minimum may become idle for too long and close again.
    ///
    /// It checks connections out, `maxConnecting` at a time, and checks all of them in at the end: until
    /// then other callers do not get them. Each of its check-outs waits as long as [`check_out`](Self::check_out) does.
    /// The pool has to be [`ready`](Self::ready).
    ///
    /// # Errors
    ///
    /// The first error of a [`check_out`](Self::check_out). Connections that were opened before stay in the
    /// pool.
    ///
    /// ```no_run
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// pool.ready();
    /// let idle = pool.warm_up(10)?; // Fails if there is no server.
    /// println!("{idle} connections are open before the first request");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn warm_up(&self, connections: u32) -> Result<u32, PoolError> {
        let caller = Location::caller();
        let mut held = Vec::new();
        loop {
            let batch = to_ask(&self.snapshot(), connections.saturating_sub(count(&held)), 0);
            if batch == 0 {
                return Ok(count(&held));
            }
            // All requests before any wait, so that connections are opened in parallel.
            let deadline = self.driver().end_of_operation();
            let until = Until::Deadline(deadline);
            let request = |_| Request::new(self.driver(), caller, Purpose::Other, until);
            let requests: Vec<_> = (0..batch).map(request).collect();
            let deadline = deadline.or_else(|| self.driver().end_of_wait());
            for request in requests {
                let answer = match request {
                    Ok(answer) => answer,
                    Err(request) => {
                        let is_in_vain = || is_in_vain(&self.snapshot());
                        let Some(answer) = request.wait_unless(is_in_vain, deadline) else {
                            return Ok(count(&held));
                        };
                        answer
                    }
                };
                held.push(answer?);
            }
        }
    }
}

/// Blocks until there is a connection for the caller.
pub(crate) fn check_out<K: Connector<EventLoop>>(
    driver: &Arc<PoolDriver<EventLoop, K>>,
    caller: &'static Location<'static>,
    purpose: Purpose,
    until: Until,
) -> Result<PooledConnection<K>, PoolError> {
    match Request::new(driver, caller, purpose, until) {
        Ok(answer) => answer,
        Err(request) => {
            let deadline = request.deadline.or_else(|| driver.end_of_wait());
            request.wait(deadline)
        }
    }
}

type Answer<K> = Result<PooledConnection<K>, PoolError>;

fn count<T>(held: &[T]) -> u32 {
    u32::try_from(held.len()).unwrap_or(u32::MAX)
}

/// A check-out that waits for its answer. Dropped before, it is cancelled, and an answer that is there
/// by then goes back to the pool.
struct Request<'a, K: Connector<EventLoop>> {
    driver: &'a Arc<PoolDriver<EventLoop, K>>,
    caller: &'static Location<'static>,
    deadline: Option<Instant>,
    key: WaiterKey,
    is_answered: bool,
}

impl<'a, K: Connector<EventLoop>> Request<'a, K> {
    /// The answer, if there is one at once.
    fn new(
        driver: &'a Arc<PoolDriver<EventLoop, K>>,
        caller: &'static Location<'static>,
        purpose: Purpose,
        mut until: Until,
    ) -> Result<Answer<K>, Self> {
        let waiter = || Waiter::Thread(parker().unparker());
        match driver.request(&mut until, purpose, caller, waiter) {
            Ok(answer) => Ok(driver.guard(answer, caller).map(PooledConnection::new)),
            Err(key) => {
                let deadline = until.deadline();
                Err(Self { driver, caller, deadline, key, is_answered: false })
            }
        }
    }

    /// Blocks until the answer is there. At `deadline` it fires the pool's timer itself, so that a busy
    /// event loop does not delay it.
    fn wait(mut self, mut deadline: Option<Instant>) -> Answer<K> {
        // A subscriber that ran meanwhile may have waited on this thread, and consumed the wake-up.
        if let Some(answer) = self.take() {
            return answer;
        }
        let parker = parker();
        loop {
            match deadline {
                Some(deadline) => drop(parker.park_deadline(deadline)),
                None => parker.park(),
            }
            if let Some(answer) = self.take() {
                return answer;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.driver.feed(Input::Timer);
                if let Some(answer) = self.take() {
                    return answer;
                }
                // A connection is being opened for it, which has timeouts of its own (OUT-23).
                deadline = None;
            }
        }
    }

    /// As [`wait`](Self::wait), for one of several requests of this thread: the wake-up for it may have come
    /// while the thread waited for another one. `None`: there is no answer, and waiting is in vain.
    fn wait_unless(
        mut self,
        is_in_vain: impl FnOnce() -> bool,
        deadline: Option<Instant>,
    ) -> Option<Answer<K>> {
        match self.take() {
            Some(answer) => Some(answer),
            // Looked for once more: it may have been delivered since.
            None if is_in_vain() => self.take(),
            None => Some(self.wait(deadline)),
        }
    }

    fn take(&mut self) -> Option<Answer<K>> {
        let answer = self.driver.take_answer(self.key, self.deadline, self.caller, |_| None);
        self.is_answered = answer.is_some();
        answer.map(|answer| answer.map(PooledConnection::new))
    }
}

impl<K: Connector<EventLoop>> Drop for Request<'_, K> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.driver.abandon(self.key);
        }
    }
}

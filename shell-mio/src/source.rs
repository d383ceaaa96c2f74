use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;
use cenote_shell::pool::{Until, WaiterKey};
use mio::Registry;
use mio::event::Event;

use crate::connection::MongoConnector;
use crate::event_loop::{EventLoop, Owner, Waiter};
use crate::pool::Pool;
use crate::pooled_connection::PooledConnection;
use crate::{BuildError, Builder, CheckOutResult, Connector, ForkError};

/// A pool in an application's own [`mio::Poll`]: nothing blocks, and the pool has no thread, except for
/// one that writes [recordings](Builder::record) and automatic dumps if there are any.
///
/// The application reserves a range of tokens for sockets that are being opened: two for each connection
/// that is opened at the same time (for a server with both an IPv4 and an IPv6 address) are enough. In
/// each round of its loop:
///
/// ```
/// # fn round(
/// #     poll: &mut mio::Poll,
/// #     events: &mut mio::Events,
/// #     source: &mut cenote_mio::PoolSource,
/// # ) -> std::io::Result<()> {
/// poll.poll(events, source.next_timeout())?; // Or the application's own timeout, if it is less.
/// for event in &*events {
///     if !source.handle_event(event) {
///         // The application's own.
///     }
/// }
/// source.turn();
/// while let Some((request, outcome)) = source.next_ready() {
///     // A check-out has its answer: `outcome` is a connection, or why there is none.
/// #     let _ = (request, outcome);
/// }
/// # Ok(())
/// # }
/// ```
///
/// Commands on a checked-out connection run with [`Connection::begin`](crate::Connection::begin) and
/// [`advance`](crate::Connection::advance), registered with a token of the application's.
///
/// An embedded pool does not resolve host names: [`MongoConnector`] needs IP addresses in the connection
/// string, [`MongoConnector::with_addresses`], or [`MongoConnector::with_resolver`]. Authentication
/// computes PBKDF2 within [`turn`](Self::turn), for about a millisecond, once for each password and salt.
///
/// A [clone of the pool](Self::pool) may be used by other threads. Their check-outs block as usual, for
/// as long as the loop is turned. On the thread of the loop itself, they would wait for ever.
///
/// Dropping it closes the pool.
pub struct PoolSource<K: Connector<EventLoop> = MongoConnector> {
    pool: Pool<K>,
    event_loop: EventLoop,
    last_request: u64,
    /// With their deadlines.
    waiting: BTreeMap<RequestId, (WaiterKey, Option<Instant>)>,
    /// The requests of `waiting` that have an answer by now.
    answered: Arc<Mutex<VecDeque<RequestId>>>,
    /// The requests that had their answer at once.
    ready: VecDeque<(RequestId, CheckOutResult<K>)>,
}

/// A check-out that was requested with [`PoolSource::check_out`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

/// Notifies a [`PoolSource`] that a request has its answer.
pub struct Answered {
    request: RequestId,
    queue: Arc<Mutex<VecDeque<RequestId>>>,
    event_loop: EventLoop,
}

impl Answered {
    pub(crate) fn notify(self) {
        lock(&self.queue).push_back(self.request);
        self.event_loop.wake();
    }
}

impl<K: Connector<EventLoop>> PoolSource<K> {
    /// Makes the pool, which is paused. Its sockets take tokens of that range. `wake` ends the
    /// application's wait for events, from any thread: usually [`mio::Waker::wake`].
    ///
    /// # Errors
    ///
    /// The options contradict each other, or the registry cannot be cloned.
    pub fn new(
        builder: Builder<K>,
        registry: &Registry,
        tokens: Range<usize>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, BuildError> {
        let registry = registry.try_clone()?;
        let event_loop = EventLoop::new(registry, tokens, wake, Owner::Application);
        let pool = Pool::start(builder.into_plan(), event_loop.clone())?;
        let (last_request, waiting, answered, ready) = Default::default();
        Ok(Self { pool, event_loop, last_request, waiting, answered, ready })
    }

    /// The pool: to mark it ready, to clear it, to look at it, to change its options.
    #[must_use]
    pub fn pool(&self) -> &Pool<K> {
        &self.pool
    }

    /// Requests a connection, as [`Pool::check_out`] does, without waiting for it.
    /// [`next_ready`](Self::next_ready) returns the answer.
    #[track_caller]
    pub fn check_out(&mut self) -> RequestId {
        self.check_out_for(Purpose::Other, None)
    }

    /// As [`check_out`](Self::check_out), and fails at `deadline`: [`Pool::check_out_before`].
    #[track_caller]
    pub fn check_out_before(&mut self, deadline: Instant) -> RequestId {
        self.check_out_for(Purpose::Other, Some(deadline))
    }

    /// As [`check_out_before`](Self::check_out_before), and says what the connection is for:
    /// [`Pool::check_out_for`].
    #[track_caller]
    pub fn check_out_for(&mut self, purpose: Purpose, deadline: Option<Instant>) -> RequestId {
        let deadline = deadline.or_else(|| self.pool.driver().end_of_operation());
        self.last_request += 1;
        let request = RequestId(self.last_request);
        let waiter = || {
            let (queue, event_loop) = (Arc::clone(&self.answered), self.event_loop.clone());
            Waiter::Loop(Answered { request, queue, event_loop })
        };
        let (mut until, caller) = (Until::Deadline(deadline), Location::caller());
        match self.pool.driver().request(&mut until, purpose, caller, waiter) {
            Ok(answer) => self.ready.push_back((request, answer)),
            Err(key) => drop(self.waiting.insert(request, (key, deadline))),
        }
        request
    }

    /// Cancels a request: it will not be ready. A connection that was being opened for it goes to the next
    /// caller. Does nothing to a request whose answer was [taken](Self::next_ready).
    pub fn cancel(&mut self, request: RequestId) {
        if let Some((key, _)) = self.waiting.remove(&request) {
            self.pool.driver().abandon(key);
        } else if let Some(at) = self.ready.iter().position(|(ready, _)| *ready == request) {
            let ready = self.ready.remove(at);
            // The guard checks the connection in.
            drop(ready.map(|(_, answer)| self.guard(answer)));
        }
    }

    /// The next request that has an answer, in the order of the answers; `None` if there is no more. The
    /// caller's location is where a [leak report](Builder::on_leak) says that the connection was checked out.
    #[track_caller]
    pub fn next_ready(&mut self) -> Option<(RequestId, Result<PooledConnection<K>, PoolError>)> {
        match self.ready.pop_front() {
            Some((request, answer)) => Some((request, self.guard(answer))),
            None => self.next_answer(),
        }
    }

    /// Takes an event that concerns the pool. Returns `false` if it does not. The consequences are left to
    /// [`turn`](Self::turn).
    pub fn handle_event(&mut self, event: &Event) -> bool {
        self.event_loop.socket_event(event.token())
    }

    /// Goes on with connections that are being opened, and with everything that is due. To be called in
    /// each round of the loop; an extra call does no harm.
    pub fn turn(&mut self) {
        self.event_loop.turn();
    }

    /// How long to wait for events at most before [`turn`](Self::turn) is called again; `None` without
    /// limit. If that changes meanwhile, the pool calls `wake`.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        let timeout = self.event_loop.fall_asleep();
        // After that, because an answer from now on wakes the loop.
        let is_ready = !self.ready.is_empty() || !lock(&self.answered).is_empty();
        if is_ready { Some(Duration::ZERO) } else { timeout }
    }

    /// Closes the pool without waiting: connections in use are closed when they are checked in.
    pub fn close(&mut self) {
        self.pool.driver().close();
        self.turn();
    }

    /// Goes on in a child process after `fork`, in another event loop: [`Pool::reset_after_fork`], which is
    /// for pools with a thread. The parent's requests are forgotten. Does nothing in the process that made
    /// the pool.
    ///
    /// # Errors
    ///
    /// The registry cannot be cloned, or another thread held the pool's lock at the fork.
    pub fn reset_after_fork(
        &mut self,
        registry: &Registry,
        tokens: Range<usize>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<(), ForkError> {
        if !self.pool.driver().is_inherited() {
            return Ok(());
        }
        let registry = registry.try_clone()?;
        let event_loop = EventLoop::new(registry, tokens, wake, Owner::Application);
        self.pool.move_to(event_loop.clone())?;
        self.event_loop = event_loop;
        self.abandon_requests();
        self.answered = Arc::default();
        Ok(())
    }

    #[track_caller]
    fn guard(&self, answer: CheckOutResult<K>) -> Result<PooledConnection<K>, PoolError> {
        self.pool.guard(answer, Location::caller())
    }

    #[track_caller]
    fn next_answer(&mut self) -> Option<(RequestId, Result<PooledConnection<K>, PoolError>)> {
        loop {
            let request = lock(&self.answered).pop_front()?;
            // Cancelled requests may still be in the queue.
            let Some((key, deadline)) = self.waiting.remove(&request) else { continue };
            let caller = Location::caller();
            match self.pool.driver().take_answer(key, deadline, caller, |_| None) {
                Some(answer) => return Some((request, answer.map(PooledConnection::new))),
                None => unreachable!("the pool notifies after it has put the answer there"),
            }
        }
    }

    /// Connections that were checked out for them go back to the pool.
    fn abandon_requests(&mut self) {
        for (_, answer) in std::mem::take(&mut self.ready) {
            drop(self.guard(answer));
        }
        for (key, _) in std::mem::take(&mut self.waiting).into_values() {
            self.pool.driver().abandon(key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Connector<EventLoop>> Drop for PoolSource<K> {
    fn drop(&mut self) {
        self.pool.driver().close();
        self.abandon_requests();
        self.event_loop.end();
    }
}

impl<K: Connector<EventLoop>> fmt::Debug for PoolSource<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolSource")
            .field("pool", &self.pool)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

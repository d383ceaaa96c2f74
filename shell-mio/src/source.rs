use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::time::{Duration, Instant};

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;
use mio::Registry;
use mio::event::Event;

use crate::builder::{BuildError, Builder, build_on};
use crate::connection::MongoConnector;
use crate::connector::Connector;
use crate::desk::{Delivery, Parked, Place};
use crate::event_loop::EventLoop;
use crate::fork::{self, ForkError};
use crate::guard::PooledConnection;
use crate::pool::Pool;
use crate::request::take_over;
use crate::woken::Waiter;

/// A pool in an application's own [`mio::Poll`]: no thread of the pool's, and nothing that blocks. Only
/// [recordings](Builder::record) and dumps that come by themselves are written by a thread.
///
/// The application keeps a range of tokens free for sockets that are being opened (two for each, for
/// a server with both an IPv4 and an IPv6 address, are plenty), and does in each round of its loop:
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
///     // What became of a check-out: `outcome` is a connection, or why there is none.
/// #     let _ = (request, outcome);
/// }
/// # Ok(())
/// # }
/// ```
///
/// What is checked out is used with [`Connection::begin`](crate::Connection::begin) and
/// [`advance`](crate::Connection::advance), registered with a token of the application's.
///
/// Names: an embedded pool resolves none itself, so that [`MongoConnector`] needs addresses in numbers,
/// [`MongoConnector::with_addresses`], or [`MongoConnector::with_resolver`]. Logging in takes a PBKDF2 of a millisecond
/// or so within [`turn`](Self::turn), once for each password and salt.
///
/// A [clone of the pool](Self::pool) may be given to other threads, whose check-outs block as usual
/// for as long as the loop is turned. On the thread of the loop they would wait for themselves.
///
/// Dropped, it closes the pool.
pub struct PoolSource<K: Connector = MongoConnector> {
    pool: Pool<K>,
    event_loop: EventLoop,
    requests: u64,
    /// By place, who waits there.
    waiting: BTreeMap<usize, (RequestId, Place)>,
    /// Answered at once.
    ready: VecDeque<(RequestId, Delivery<K>)>,
}

/// A check-out that was asked for, by [`PoolSource::check_out`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl<K: Connector> PoolSource<K> {
    /// Makes the pool, which is paused. Its sockets take tokens of that range. `wake` ends the
    /// application's wait for events, from any thread: as a rule [`mio::Waker::wake`].
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a registry that cannot be shared.
    pub fn new(
        builder: Builder<K>,
        registry: &Registry,
        tokens: Range<usize>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, BuildError> {
        let event_loop = EventLoop::new(registry.try_clone()?, tokens, wake, false);
        let pool = Pool::new(build_on(&event_loop, builder.into_plan())?);
        let (waiting, ready) = (BTreeMap::new(), VecDeque::new());
        Ok(Self { pool, event_loop, requests: 0, waiting, ready })
    }

    /// The pool: to mark it ready, to clear it, to look at it, to change its options.
    #[must_use]
    pub fn pool(&self) -> &Pool<K> {
        &self.pool
    }

    /// Asks for a connection, as [`Pool::check_out`] does, without waiting for it.
    /// [`next_ready`](Self::next_ready) says what became of it.
    pub fn check_out(&mut self) -> RequestId {
        self.check_out_for(Purpose::Other, None)
    }

    /// As [`check_out`](Self::check_out), and gives up at `deadline` (CS-02, CS-07).
    pub fn check_out_before(&mut self, deadline: Instant) -> RequestId {
        self.check_out_for(Purpose::Other, Some(deadline))
    }

    /// As [`check_out_before`](Self::check_out_before), and says what the connection is for (LB-06).
    pub fn check_out_for(&mut self, purpose: Purpose, deadline: Option<Instant>) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        let waiter = || Waiter::Loop(self.event_loop.clone());
        match self.pool.shared().request(deadline, purpose, waiter) {
            Ok(delivery) => self.ready.push_back((request, delivery)),
            Err(place) => drop(self.waiting.insert(place.index, (request, place))),
        }
        request
    }

    /// Gives a request up: nothing will be ready for it. A connection that was on its way goes to
    /// the next one who waits. Does nothing when the request was answered already and
    /// [taken](Self::next_ready).
    pub fn cancel(&mut self, request: RequestId) {
        let place = self.waiting.values().find(|(it, _)| *it == request).map(|(_, place)| *place);
        if let Some(place) = place {
            self.waiting.remove(&place.index);
            self.pool.shared().abandon(place);
        } else if let Some(at) = self.ready.iter().position(|(it, _)| *it == request) {
            let answer = self.ready.remove(at);
            // Comes back.
            drop(answer.map(|(_, delivery)| self.guard(delivery)));
        }
    }

    /// What became of one of the requests, in the order in which that was settled; `None` when
    /// nothing more is ready. For a connection that is held for long, this is the place where it was
    /// checked out.
    #[track_caller]
    pub fn next_ready(&mut self) -> Option<(RequestId, Result<PooledConnection<K>, PoolError>)> {
        let (request, delivery) = match self.ready.pop_front() {
            Some(ready) => ready,
            None => self.next_answer()?,
        };
        Some((request, self.guard(delivery)))
    }

    /// Takes an event that concerns the pool. `false` if it does not. What follows from it is done
    /// by [`turn`](Self::turn).
    pub fn handle_event(&mut self, event: &Event) -> bool {
        self.event_loop.ready(event.token())
    }

    /// Goes on with everything that can go on: connections that are being opened, and whatever is
    /// due. To be called in each round of the loop; once too often does no harm.
    pub fn turn(&mut self) {
        self.event_loop.turn();
    }

    /// How long to wait for events at most before [`turn`](Self::turn) is called again; `None` for as
    /// long as there are none. Should be less, or more, `wake` is called.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        let timeout = self.event_loop.fall_asleep();
        let is_ready = !self.ready.is_empty() || !self.pool.shared().lock().answered.is_empty();
        if is_ready { Some(Duration::ZERO) } else { timeout }
    }

    /// Closes the pool for good, and waits for nothing: connections that are out are closed when
    /// they come back.
    pub fn close(&mut self) {
        self.pool.begin_to_close();
        self.turn();
    }

    /// Goes on in a child process, whose parent made the pool, in an event loop of its own. See
    /// [`Pool::reset_after_fork`], which is for pools with a thread. Requests of the parent are
    /// forgotten. Does nothing in the process that the pool lives in.
    ///
    /// # Errors
    ///
    /// A registry that cannot be shared; or a lock was held by another thread at the fork.
    pub fn reset_after_fork(
        &mut self,
        registry: &Registry,
        tokens: Range<usize>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<(), ForkError> {
        if !self.pool.shared().is_foreign() {
            return Ok(());
        }
        let event_loop = EventLoop::new(registry.try_clone()?, tokens, wake, false);
        fork::begin_anew(self.pool.shared(), &event_loop)?;
        self.event_loop = event_loop;
        self.waiting.clear();
        // They come back, and are closed.
        for (_, delivery) in std::mem::take(&mut self.ready) {
            drop(self.guard(delivery));
        }
        Ok(())
    }

    #[track_caller]
    fn guard(&self, delivery: Delivery<K>) -> Result<PooledConnection<K>, PoolError> {
        take_over(self.pool.shared(), delivery, Location::caller())
    }

    fn next_answer(&mut self) -> Option<(RequestId, Delivery<K>)> {
        let mut desk = self.pool.shared().lock();
        let place = desk.answered.pop_front()?;
        let parked = desk.parked.remove(place);
        drop(desk);
        let waiting = self.waiting.remove(&place);
        match (parked, waiting) {
            (Parked::Answered(delivery), Some((request, _))) => Some((request, delivery)),
            (Parked::Waiting(_), _) | (_, None) => unreachable!("who is answered has asked"),
        }
    }
}

impl<K: Connector> Drop for PoolSource<K> {
    fn drop(&mut self) {
        self.pool.begin_to_close();
        for (_, delivery) in std::mem::take(&mut self.ready) {
            drop(self.guard(delivery));
        }
        for (_, place) in std::mem::take(&mut self.waiting).into_values() {
            self.pool.shared().abandon(place);
        }
        self.pool.shared().end_loop(&self.event_loop);
    }
}

impl<K: Connector> fmt::Debug for PoolSource<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolSource")
            .field("pool", &self.pool)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

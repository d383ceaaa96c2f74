//! Asking for a connection.
//!
//! The machine decides the usual cases [at once](cenote_core::pool::PoolState::check_out_at_once); each of them is a
//! function here. Whatever else there is goes through an input. The first row that applies is the way taken, and a
//! way that cannot answer goes on to the one in its last column:
//!
//! | way | taken when | may skip | otherwise |
//! |---|---|---|---|
//! | `request_in_span` | spans are collected, and the caller may wait | nothing | `request_by_input` |
//! | `request_by_input` | everything, a deadline, or limits for waiting are recorded | nothing | – |
//! | `request_with_events` | events have a subscriber, or are logged | the deadline | `request_by_input` |
//! | `check_out_at_once` | a connection is available | the clock, the deadline, actions | `request_in_turn`; `request_by_input` if its socket has ended |
//! | `request_in_turn` | none is, and the request is queued behind others | actions but the timer | `request_by_input` |
//!
//! `request_with_events` makes use of `check_out_at_once`, too. A way that may skip the clock reads it if the machine
//! [needs the time](cenote_core::pool::PoolState::needs_now_at_once).

use std::panic::{Location, resume_unwind};
use std::sync::Arc;
use std::thread;

use cenote_core::pool::{ActionSink, Instant, Purpose};

use super::check_out::Until;
use super::collector::{FewEvents, NoEvents};
use super::driver::{InnerGuard, PoolDriver};
use super::idle_sockets::{IdleFault, IdleLook};
use super::inner::{CheckOutArgs, PoolInner};
use super::types::{CheckOutResult, PooledSocket, Types, outcome};
use super::waiters::WaiterKey;
use crate::connection::Connector;
use crate::runtime::Runtime;
use crate::runtime::wake_list::WakeList;
use crate::spans::{self, CheckOutSpan, waits_for};
use crate::trace::PanicGuard;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Asks for a connection for a caller at `caller`, which a recording names. Returns the answer if there is one
    /// at once; otherwise the caller waits: `waiter` is called, under the lock, for what wakes it, and the key is
    /// for [`take_answer`](Self::take_answer) or [`abandon`](Self::abandon), one of which must follow. For a caller
    /// that waits, [`Until::Timeout`] becomes its deadline.
    ///
    /// # Errors
    ///
    /// The key of a caller that has to wait.
    ///
    /// # Panics
    ///
    /// When `waiter` does. The check-out is cancelled then.
    pub fn request(
        self: &Arc<Self>,
        until: &mut Until,
        purpose: Purpose,
        caller: &'static Location<'static>,
        waiter: impl FnOnce() -> R::Waiter,
    ) -> Result<CheckOutResult<R, K>, WaiterKey> {
        // A request that cannot wait needs no span.
        if spans::are_wanted() && until.begin(self).is_none_or(|at| at > R::now()) {
            return self.request_in_span(until.begin(self), purpose, caller, waiter);
        }
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = self.lock();
        if inner.state.is_recording() {
            inner.set_place(caller);
            // A deadline is recorded, too.
            if inner.is_recorded_by_input() || until.begin(self).is_some() {
                panic_guard.defuse();
                let (look, span) = (IdleLook::Due, CheckOutSpan::default());
                return self.request_by_input(
                    inner,
                    look,
                    until.begin(self),
                    purpose,
                    waiter,
                    span,
                );
            }
        }
        if self.wants_events() {
            panic_guard.defuse();
            return self.request_with_events(inner, until.begin(self), purpose, waiter);
        }
        let now = self.now_at_once(&inner);
        let checked_out = self.check_out_at_once(&mut inner, now, purpose, &mut NoEvents);
        panic_guard.defuse();
        match checked_out {
            Ok(Some(conn)) => {
                Self::release_at_once(inner);
                Ok(Ok(conn))
            }
            Ok(None) => self.request_in_turn(inner, until.begin(self), purpose, waiter),
            Err(fault) => {
                let (look, span) = (IdleLook::Broken(fault), CheckOutSpan::default());
                self.request_by_input(inner, look, until.begin(self), purpose, waiter, span)
            }
        }
    }

    /// A [request](Self::request) whose wait has a span, if it has to wait.
    #[inline(never)]
    fn request_in_span(
        self: &Arc<Self>,
        deadline: Option<std::time::Instant>,
        purpose: Purpose,
        caller: &'static Location<'static>,
        waiter: impl FnOnce() -> R::Waiter,
    ) -> Result<CheckOutResult<R, K>, WaiterKey> {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = self.lock();
        inner.set_place(caller);
        let fault = self.next_fault(&mut inner);
        let is_served = fault.is_none() && inner.state.next_available().is_some();
        panic_guard.defuse();
        if is_served {
            let (look, span) = (IdleLook::Fine, CheckOutSpan::default());
            return self.request_by_input(inner, look, deadline, purpose, waiter, span);
        }
        // A collector of spans must not be called under the lock, and an establishment needs the span that is above it.
        match fault {
            Some(fault) => self.close_found(inner, fault),
            None => drop(inner),
        }
        let span = CheckOutSpan::begin(self.address());
        let mut inner = self.lock();
        inner.set_place(caller);
        self.request_by_input(inner, IdleLook::Due, deadline, purpose, waiter, span)
    }

    /// Closes a connection that was found broken, and releases the lock.
    fn close_found(self: &Arc<Self>, inner: InnerGuard<'_, R, K>, broken: IdleFault) {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let context = self.context(&inner, true);
        let mut wakes = WakeList::default();
        self.close_broken(&mut inner, IdleLook::Broken(broken), context, &mut wakes);
        panic_guard.defuse();
        self.release_and_run(inner, context, wakes);
    }

    /// A [request](Self::request) whose events are wanted.
    #[inline(never)]
    fn request_with_events(
        self: &Arc<Self>,
        inner: InnerGuard<'_, R, K>,
        deadline: Option<std::time::Instant>,
        purpose: Purpose,
        waiter: impl FnOnce() -> R::Waiter,
    ) -> Result<CheckOutResult<R, K>, WaiterKey> {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let mut events = FewEvents::default();
        let checked_out = self.check_out_at_once(&mut inner, self.now(), purpose, &mut events);
        panic_guard.defuse();
        let look = match checked_out {
            Ok(Some(conn)) => {
                self.release_and_tell(inner, events);
                return Ok(Ok(conn));
            }
            Ok(None) => IdleLook::Due,
            Err(fault) => IdleLook::Broken(fault),
        };
        self.request_by_input(inner, look, deadline, purpose, waiter, CheckOutSpan::default())
    }

    /// A [request](Self::request) that no available connection serves, so that it probably has to wait.
    #[inline(never)]
    fn request_in_turn(
        self: &Arc<Self>,
        inner: InnerGuard<'_, R, K>,
        deadline: Option<std::time::Instant>,
        purpose: Purpose,
        waiter: impl FnOnce() -> R::Waiter,
    ) -> Result<CheckOutResult<R, K>, WaiterKey> {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let since = R::now();
        let is_timed = deadline.is_some() || inner.state.needs_now() || self.is_watched();
        let now = if is_timed { self.instant(since) } else { inner.state.now() };
        let args = CheckOutArgs { deadline: deadline.map(|at| self.instant(at)), purpose };
        let enqueued = inner.enqueue_at_once(now, since, args);
        panic_guard.defuse();
        let Some((key, limit)) = enqueued else {
            let (look, span) = (IdleLook::Due, CheckOutSpan::default());
            return self.request_by_input(inner, look, deadline, purpose, waiter, span);
        };
        let parked = inner.waiters.park(key, waiter);
        let timer = limit.and_then(|limit| inner.arm_at(limit));
        Self::release_and_wake(inner, timer);
        Err(self.waiting(key, parked))
    }

    /// A [request](Self::request) that is fed to the machine as an input, after the connections that must not be used.
    #[inline(never)]
    fn request_by_input(
        self: &Arc<Self>,
        inner: InnerGuard<'_, R, K>,
        look: IdleLook,
        deadline: Option<std::time::Instant>,
        purpose: Purpose,
        waiter: impl FnOnce() -> R::Waiter,
        span: CheckOutSpan,
    ) -> Result<CheckOutResult<R, K>, WaiterKey> {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let is_timed = deadline.is_some() || self.is_watched();
        let context = self.context(&inner, is_timed).of_use();
        let mut wakes = WakeList::default();
        self.close_broken(&mut inner, look, context, &mut wakes);
        let args = CheckOutArgs { deadline: deadline.map(|at| self.instant(at)), purpose };
        let before = span.is_some().then(|| inner.state.snapshot());
        let answer = inner.check_out(context.now, args, R::now, context.wants_events, &mut wakes);
        panic_guard.defuse();
        let key = match answer {
            Err(key) => key,
            Ok(result) => {
                self.release_and_run(inner, context, wakes);
                let told = result.as_ref().map(|socket| socket.id).map_err(|failed| &failed.error);
                span.end(outcome(told, self.address()));
                return Ok(result);
            }
        };
        let parked = inner.waiters.park(key, waiter);
        if let Some(before) = before {
            self.spans.insert(key.id, span, waits_for(&before, &inner.state.snapshot()));
        }
        self.release_and_run(inner, context, wakes);
        Err(self.waiting(key, parked))
    }

    /// The key of a caller that waits, unless a foreign waker panicked while it was cloned: the machine has the
    /// check-out by then.
    fn waiting(self: &Arc<Self>, key: WaiterKey, parked: thread::Result<()>) -> WaiterKey {
        if let Err(panic) = parked {
            self.abandon(key);
            resume_unwind(panic);
        }
        key
    }

    /// Most check-outs end here: nothing follows from them. Fails with a connection that has to be closed first.
    #[inline(always)]
    fn check_out_at_once(
        &self,
        inner: &mut PoolInner<R, K>,
        now: Instant,
        purpose: Purpose,
        events: &mut impl ActionSink<Types<R, K>>,
    ) -> Result<Option<Box<PooledSocket<R, K>>>, IdleFault> {
        match self.next_fault(inner) {
            None => Ok(inner.check_out_at_once(now, purpose, events)),
            Some(fault) => Err(fault),
        }
    }
}

//! A check-out that waits, and its cancellation.

use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use cenote_core::error::{PoolError, Wait, WaitLimit};
use cenote_core::pool::{Health, Input, Purpose};

use super::collector::{FewEvents, NoEvents};
use super::driver::{InnerGuard, PoolDriver};
use super::guard::PooledConnection;
use super::types::outcome;
use super::waiters::{WaiterKey, WaiterSlot};
use crate::connection::Connector;
use crate::runtime::Runtime;
use crate::runtime::wake_list::WakeList;
use crate::trace::PanicGuard;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// The answer to a check-out that `caller` had to wait for, as [`guard`](Self::guard) returns it. `None` while
    /// there is none: then `on_waiting` may exchange the waiter, and returns the old one, which is dropped after
    /// the lock is released. `deadline` is that of the [request](Self::request), for the error's text.
    ///
    /// # Panics
    ///
    /// For a key whose answer was taken.
    pub fn take_answer(
        self: &Arc<Self>,
        key: WaiterKey,
        deadline: Option<Instant>,
        caller: &'static Location<'static>,
        on_waiting: impl FnOnce(&mut R::Waiter) -> Option<R::Waiter>,
    ) -> Option<Result<PooledConnection<R, K>, PoolError>> {
        let mut inner = self.lock();
        if let Some(WaiterSlot::Waiting(waiter)) = inner.waiters.get_mut(key.slot) {
            // Possibly the last waker of a task, whose drop may use this pool.
            let old = on_waiting(waiter);
            drop(inner);
            drop(old);
            return None;
        }
        let slot = inner.waiters.remove(key.slot);
        drop(inner);
        let Some(WaiterSlot::Answered(result)) = slot else {
            unreachable!("an answer is taken once, and by the caller that waits for it")
        };
        self.spans.end(key.id, outcome(result.as_ref().map(|socket| socket.id), self.address()));
        let explain =
            |error: PoolError| error.with_wait(self.wait(key, deadline)).with_request(key.id);
        Some(self.guard_after(result, explain, caller, Some(key.id)))
    }

    /// How long a check-out has waited, and what limits that.
    #[cold]
    fn wait(&self, key: WaiterKey, deadline: Option<Instant>) -> Wait {
        let after = |deadline: Instant| deadline.saturating_duration_since(key.since);
        let timeout = self.options().wait_queue_timeout.filter(|limit| !limit.is_zero());
        let by_option = timeout.map(WaitLimit::WaitQueueTimeout);
        let limit = deadline.map(after).map(WaitLimit::Deadline).or(by_option);
        Wait { waited: after(R::now()), limit }
    }

    /// The caller stops waiting. A connection that was already delivered to it returns to the pool,
    /// healthy.
    pub fn abandon(self: &Arc<Self>, key: WaiterKey) {
        self.spans.cancel(key.id);
        let mut inner = self.lock();
        match inner.waiters.get_mut(key.slot) {
            // Of the parent, in a child process.
            None | Some(WaiterSlot::GivenUp) => {}
            Some(slot @ (WaiterSlot::Waiting(_) | WaiterSlot::Vacant)) => {
                // Dropped after the lock is released: possibly the last waker of a task.
                let waiter = mem::replace(slot, WaiterSlot::Vacant);
                self.cancel(inner, key);
                drop(waiter);
            }
            Some(WaiterSlot::Answered(_)) => {
                if let Some(WaiterSlot::Answered(Ok(conn))) = inner.waiters.remove(key.slot) {
                    let health = Health::Healthy;
                    self.feed_locked(inner, Input::CheckedIn { id: conn.id, conn, health });
                }
            }
        }
    }

    fn cancel(self: &Arc<Self>, inner: InnerGuard<'_, R, K>, key: WaiterKey) {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let context = self.context(&inner, inner.state.is_recording());
        let mut events = FewEvents::default();
        if context.wants_events && inner.cancel_at_once(context.now, key.id, &mut events) {
            panic_guard.defuse();
            return self.release_and_tell(inner, events);
        }
        if !context.wants_events && inner.cancel_at_once(context.now, key.id, &mut NoEvents) {
            return panic_guard.defuse();
        }
        let mut wakes = WakeList::default();
        let input = Input::CheckOutCancelled { id: key.id };
        inner.handle(context.now, input, context.wants_events, &mut wakes);
        let is_failing = !inner.pending.failing.is_empty();
        match inner.waiters.get_mut(key.slot) {
            // One of many that fail: the machine does not know it any more.
            Some(slot @ WaiterSlot::Vacant) if is_failing => *slot = WaiterSlot::GivenUp,
            // If its time was over, the machine answered that instead of the cancellation.
            Some(_) | None => drop(inner.waiters.remove(key.slot)),
        }
        panic_guard.defuse();
        self.release_and_run(inner, context, wakes);
    }
}

/// A check-out: requests a connection when it is polled first, and waits for its turn.
///
/// Cancel-safe: dropped before the answer came, it leaves the wait queue; a connection that was already
/// delivered to it returns to the pool.
#[must_use = "a check-out does nothing unless it is awaited"]
pub struct CheckOut<'a, R: Runtime, K: Connector<R>> {
    driver: &'a Arc<PoolDriver<R, K>>,
    until: Until,
    purpose: Purpose,
    caller: &'static Location<'static>,
    stage: Stage,
}

/// How long a check-out may take.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Until {
    /// `timeoutMS` of its pool, from the [request](PoolDriver::request) on.
    Timeout,
    /// The caller's deadline; `None` leaves it to `waitQueueTimeoutMS`.
    Deadline(Option<Instant>),
}

enum Stage {
    New,
    Waiting(WaiterKey),
    Answered,
}

impl<'a, R: Runtime<Waiter = Waker>, K: Connector<R>> CheckOut<'a, R, K> {
    pub(super) const fn new(
        driver: &'a Arc<PoolDriver<R, K>>,
        purpose: Purpose,
        until: Until,
        caller: &'static Location<'static>,
    ) -> Self {
        Self { driver, until, purpose, caller, stage: Stage::New }
    }
}

impl Until {
    /// The deadline of a check-out that begins now, which is kept for one that has to wait.
    pub(super) fn begin<R: Runtime, K: Connector<R>>(
        &mut self,
        driver: &PoolDriver<R, K>,
    ) -> Option<Instant> {
        if matches!(self, Self::Timeout) {
            *self = Self::Deadline(driver.end_of_operation());
        }
        self.deadline()
    }

    /// The deadline of a check-out that waits.
    #[must_use]
    pub const fn deadline(self) -> Option<Instant> {
        match self {
            Self::Timeout => None,
            Self::Deadline(deadline) => deadline,
        }
    }
}

impl<R: Runtime<Waiter = Waker>, K: Connector<R>> Future for CheckOut<'_, R, K> {
    type Output = Result<PooledConnection<R, K>, PoolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { driver, until, purpose, caller, stage } = &mut *self;
        match *stage {
            // A task whose check-outs are all served at once has to yield now and then, or a timeout around
            // it would never be looked at.
            Stage::New => R::poll_cooperatively(cx, |waker| {
                match driver.request(until, *purpose, caller, || waker.clone()) {
                    Ok(result) => {
                        let output = driver.guard(result, caller);
                        *stage = Stage::Answered;
                        Poll::Ready(output)
                    }
                    Err(key) => {
                        *stage = Stage::Waiting(key);
                        Poll::Pending
                    }
                }
            }),
            Stage::Waiting(key) => {
                let answer = driver.take_answer(key, until.deadline(), caller, |waker| {
                    let is_same = waker.will_wake(cx.waker());
                    (!is_same).then(|| mem::replace(waker, cx.waker().clone()))
                });
                let Some(output) = answer else { return Poll::Pending };
                *stage = Stage::Answered;
                Poll::Ready(output)
            }
            Stage::Answered => panic!("a check-out is polled after it was answered"),
        }
    }
}

impl<R: Runtime, K: Connector<R>> Drop for CheckOut<'_, R, K> {
    fn drop(&mut self) {
        if let Stage::Waiting(key) = self.stage {
            self.driver.abandon(key);
        }
    }
}

impl<R: Runtime, K: Connector<R>> fmt::Debug for CheckOut<'_, R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckOut").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

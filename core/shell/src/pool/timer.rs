//! The pool's one timer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote_core::pool::{Input, Instant};

use super::driver::PoolDriver;
use super::idle_sockets::SWEEP_INTERVAL;
use super::inner::PoolInner;
use crate::connection::Connector;
use crate::runtime::Runtime;

/// Starts the timer, which feeds [`Input::Timer`] at the machine's deadlines until the pool is closed.
pub(super) fn start<R: Runtime, K: Connector<R>>(driver: &Arc<PoolDriver<R, K>>, number: u32) {
    let (sleep, sweep, sweep_after) = (None, None, SWEEP_INTERVAL);
    let timer = Timer { driver: Arc::clone(driver), number, sleep, sweep, sweep_after };
    // Not under a lock: a runtime that has shut down drops the timer at once.
    let task = driver.runtime().spawn(timer);
    driver.runtime.set_timer(task);
}

struct Timer<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    number: u32,
    /// Until which of the machine's times it sleeps.
    sleep: Option<(Instant, Sleep)>,
    /// The next look at the idle connections. It tells when to look again.
    sweep: Option<Pin<Box<dyn Future<Output = Duration> + Send>>>,
    sweep_after: Duration,
}

impl<R: Runtime, K: Connector<R>> PoolInner<R, K> {
    /// Sets the timer to the machine's next deadline, if that is earlier. Returns the waker of the
    /// timer, which has to be woken after the lock is released.
    #[inline(never)]
    pub(super) fn arm(&mut self) -> Option<Waker> {
        let due = self.state.next_deadline()?.at;
        self.arm_at(due)
    }

    /// [`arm`](Self::arm), when an input has added this deadline and no earlier one.
    #[inline(always)]
    pub(super) fn arm_at(&mut self, due: Instant) -> Option<Waker> {
        if self.timer.armed.is_some_and(|armed| armed <= due) {
            return None;
        }
        self.timer.armed = Some(due);
        self.timer.waker.take()
    }

    /// [`arm`](Self::arm), after a check-out or a check-in that was handled at once.
    #[inline(always)]
    pub(super) fn arm_at_once(&mut self) -> Option<Waker> {
        let armed = self.timer.armed;
        let is_kept = armed.is_some_and(|armed| self.state.keeps_deadline_at_once(armed));
        if is_kept { None } else { self.arm() }
    }

    /// [`arm`](Self::arm), after a check-out or a check-in.
    #[inline(always)]
    pub(super) fn arm_after_use(&mut self) -> Option<Waker> {
        let armed = self.timer.armed;
        let is_kept = armed.is_some_and(|armed| self.state.keeps_deadline(armed));
        if is_kept { None } else { self.arm() }
    }
}

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the timer waits for.
enum Next {
    /// This time, or an earlier one of which the timer's waker is told.
    At(Instant),
    /// The waker alone: nothing is due.
    Nothing,
    Closed,
}

impl<R: Runtime, K: Connector<R>> Timer<R, K> {
    /// Under the lock, so that a time that is set later finds the waker.
    fn next(&self, cx: &Context<'_>) -> Next {
        let mut inner = self.driver.lock();
        if inner.is_closed() {
            return Next::Closed;
        }
        let timer = &mut inner.timer;
        let old = timer.waker.replace(cx.waker().clone());
        let next = timer.armed.map_or(Next::Nothing, Next::At);
        drop(inner);
        drop(old);
        next
    }

    /// Looks at the idle connections when it is time.
    fn poll_sweep(&mut self, cx: &mut Context<'_>) {
        if !K::LOOKS_AT_IDLE {
            return;
        }
        loop {
            let sweep = self
                .sweep
                .get_or_insert_with(|| sweep_after(Arc::clone(&self.driver), self.sweep_after));
            let Poll::Ready(after) = sweep.as_mut().poll(cx) else { return };
            (self.sweep, self.sweep_after) = (None, after);
        }
    }
}

fn sweep_after<R: Runtime, K: Connector<R>>(
    driver: Arc<PoolDriver<R, K>>,
    after: Duration,
) -> Pin<Box<dyn Future<Output = Duration> + Send>> {
    let sleep = driver.runtime().sleep_until(R::now() + after);
    Box::pin(async move {
        sleep.await;
        driver.sweep().await
    })
}

impl<R: Runtime, K: Connector<R>> Future for Timer<R, K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.poll_sweep(cx);
        loop {
            let armed = match this.next(cx) {
                Next::Closed => return Poll::Ready(()),
                Next::At(armed) => armed,
                Next::Nothing => return Poll::Pending,
            };
            let sleep = this.sleep.take().filter(|(at, _)| *at == armed);
            let sleep = match (sleep, this.driver.time_of(armed)) {
                (Some((_, sleep)), _) => sleep,
                (None, Some(at)) => Box::pin(this.driver.runtime().sleep_until(at)),
                // Out of the clock's range, which means never.
                (None, None) => return Poll::Pending,
            };
            let (_, sleep) = this.sleep.insert((armed, sleep));
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            this.sleep = None;
            // The input itself sets the next time.
            this.driver.lock().timer.armed = None;
            this.driver.feed(Input::Timer);
        }
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Timer<R, K> {
    /// Dropped before the pool is closed, the timer's runtime has shut down, unless this is the timer of
    /// the process from which the pool was forked. Dropped later, it leaves subscribers to the caller that closed the
    /// pool: a client has them told of its pools in their order.
    fn drop(&mut self) {
        let inner = self.driver.lock();
        let has_ended_early = inner.timer.number == self.number && !inner.is_closed();
        drop(inner);
        if has_ended_early {
            self.driver.runtime_ended();
        }
    }
}

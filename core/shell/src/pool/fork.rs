//! The pool in a process that was forked from the one that made it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cenote_core::pool::Input;

use super::driver::{InnerGuard, PoolDriver};
use super::inner::PoolInner;
use super::timer;
use crate::connection::Connector;
use crate::runtime::Runtime;
use crate::runtime::fork::ForkError;
use crate::runtime::wake_list::WakeList;

/// How often, and at what intervals, the lock is tried. A thread of this process releases it within
/// microseconds; a thread of the parent never does.
const ATTEMPTS: u32 = 100;
const INTERVAL: Duration = Duration::from_millis(1);

/// Why a pool is reset in a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkTrigger {
    /// The child asked for it, before anything else: all callers that wait are the parent's, and are not
    /// woken.
    Requested,
    /// An operation is to run on a connection of the parent's. Callers that wait may be this process's.
    Operating,
    /// A connection is to be opened, by a thread that performs the pool's actions and goes on to do so.
    Establishing,
}

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Makes the pool usable in a process that was forked from the one that made it: it forgets every
    /// connection of the parent and goes on empty, as ready as it was, on `runtime`. Does nothing in the
    /// process that the pool lives in.
    ///
    /// # Errors
    ///
    /// When another thread held the pool's lock at the moment of the fork.
    // FK-02
    pub fn reset_after_fork(self: &Arc<Self>, runtime: R) -> Result<(), ForkError> {
        self.reset(ForkTrigger::Requested, || Ok(runtime))
    }

    /// Calls `work` while no other thread changes the pool, such as to fork: otherwise a child process may
    /// inherit a lock that is never released. `work` must not use the pool.
    pub fn while_quiet<T>(&self, work: impl FnOnce() -> T) -> T {
        let _inner = self.lock();
        self.runtime.while_quiet(work)
    }

    /// The same as [`reset_after_fork`](Self::reset_after_fork), where the pool notices the fork by itself.
    pub(super) fn reset_in_child(self: &Arc<Self>, trigger: ForkTrigger) -> Result<(), ForkError> {
        self.reset(trigger, || self.runtime().after_fork())
    }

    fn reset(
        self: &Arc<Self>,
        trigger: ForkTrigger,
        runtime: impl FnOnce() -> Result<R, ForkError>,
    ) -> Result<(), ForkError> {
        if !self.is_inherited() {
            return Ok(());
        }
        let runtime = runtime()?;
        let mut inner = self.lock_after_fork()?;
        if !self.is_inherited() {
            return Ok(()); // Another thread of the child was first.
        }
        let inherited = (self.runtime.move_to(runtime), forget_parent(&mut inner, trigger));
        let timer = inner.timer.number;
        let context = self.context(&inner, true);
        let mut wakes = WakeList::default();
        inner.handle(self.now(), Input::ResetAfterFork, context.wants_events, &mut wakes);
        if trigger == ForkTrigger::Requested {
            // The last waker of a task drops the task, and the parent's sockets with it.
            let failing = inner.answer_failing(usize::MAX);
            R::discard_inherited((std::mem::take(&mut wakes), failing));
        }
        self.release_and_run(inner, context, wakes);
        // Not under the lock: a task that is dropped may take it.
        R::discard_inherited(inherited);
        timer::start(self, timer);
        Ok(())
    }

    fn lock_after_fork(&self) -> Result<InnerGuard<'_, R, K>, ForkError> {
        for _ in 0..ATTEMPTS {
            match self.try_lock() {
                Some(inner) => return Ok(inner),
                None => thread::sleep(INTERVAL),
            }
        }
        Err(ForkError::InUseAtFork)
    }
}

/// Removes what concerns the parent alone: actions and events that it has yet to perform and tell, its
/// trace, the tasks that it would abort. Returns what is to be discarded without the lock.
// FK-01
fn forget_parent<R: Runtime, K: Connector<R>>(
    inner: &mut PoolInner<R, K>,
    trigger: ForkTrigger,
) -> impl Sized + use<R, K> {
    let pending = &mut inner.pending;
    pending.has_work_task = false;
    pending.failing.begin_anew();
    let actions = (trigger != ForkTrigger::Establishing).then(|| {
        pending.closing = 0;
        (pending.work.forget(), pending.notifications.forget())
    });
    R::discard_inherited(std::mem::take(&mut pending.wakes));
    inner.state.stop_writing();
    for interrupt in std::mem::take(&mut inner.interrupts).values() {
        // FK-04
        interrupt.renounce();
    }
    inner.timer.armed = None;
    inner.timer.number += 1;
    (actions, std::mem::take(&mut inner.tasks), inner.timer.waker.take())
}

impl<R: crate::runtime::CurrentRuntime, K: Connector<R>> super::Pool<R, K> {
    /// Makes the pool usable in a process that was forked from the one that made it: it forgets every
    /// connection of the parent and goes on empty, as ready as it was, on the runtime where this is called.
    /// Does nothing in the process that the pool lives in.
    ///
    /// To be called in the child before anything else is done with the pool, once for each pool. Fork outside
    /// of any runtime, while no other thread uses the pool, and forget the parent's runtime in the child
    /// ([`std::mem::forget`]): dropped there, it would break the parent's.
    ///
    /// No byte is written to a socket of the parent, and none is closed in an orderly way; they are not even
    /// dropped, so that their descriptors stay open in the child until it ends or executes another program. A
    /// server therefore sees the end of a connection that the parent closes when the child has ended, too.
    /// Connections and check-outs that were under way when the process forked are lost to the child: the
    /// former refuse to [run](super::PooledConnection::run) anything, the latter fail.
    ///
    /// A pool that was not reset resets itself when it notices: when it has to open a connection, or an
    /// operation runs on one of the parent's, which fails then; the next attempt works. Dropping a pool or a
    /// connection in a child leaves the parent's alone, whether it was reset or not. A child that was made
    /// without `fork()`, such as by a bare `clone` system call, [is not noticed](crate::runtime::process::Process).
    ///
    /// # Errors
    ///
    /// [`ForkError`]. The pool is then as it was, and cannot be used in this process.
    pub fn reset_after_fork(&self) -> Result<(), ForkError> {
        let driver = self.driver();
        driver.reset(ForkTrigger::Requested, || driver.runtime().after_fork())
    }
}

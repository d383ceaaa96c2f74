//! A process that was forked from the one that made the pool.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cenote_core::error::Stage;
use cenote_core::pool::{ConnId, Input};
use thiserror::Error;
use tokio::runtime::Handle;

use crate::connector::Connector;
use crate::desk::Desk;
use crate::home;
use crate::pool::Pool;
use crate::shared::Shared;
use crate::sync::{MutexGuard, Notify};
use crate::woken::Woken;

/// How often, and after how long again, the lock is tried: whoever has it in this process gives it
/// back within microseconds; whoever had it in the parent never does.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Why a pool could not be [reset](Pool::reset_after_fork) in a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ForkError {
    /// A pool needs a runtime to live in.
    #[error("there is no tokio runtime here: call it in the child's own one")]
    NoRuntime,
    /// The runtime's epoll instance and its queues are the parent's, too.
    #[error("this runtime is the parent's: make another one in the child")]
    InheritedRuntime,
    /// The thread that used the pool at the moment of the fork is not there to give its lock back.
    #[error(
        "another thread used the pool at the moment of the fork, and its lock is held for ever: \
         fork when nobody uses the pool, or make a new one in the child"
    )]
    InUseAtFork,
}

/// How a pool comes to be reset in a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Before anything else: all who wait are the parent's, and are not woken.
    Asked,
    /// Something is to be run on a connection of the parent's. Among those who wait may be some of
    /// this process.
    Operating,
    /// A connection is to be opened, by whoever is emptying the outbox and goes on to do so.
    Opening,
}

impl<K: Connector> Pool<K> {
    /// Makes the pool usable in a process that was forked from the one that made it (FK-01, FK-02):
    /// it forgets every connection of the parent and goes on empty, as ready as it was, in the tokio
    /// runtime where this is called. Does nothing in the process that the pool lives in.
    ///
    /// To be called in the child before anything else is done with the pool, once for each pool:
    ///
    /// ```no_run
    /// # fn fork() -> bool { false }
    /// # fn example(pool: cenote_tokio::Pool, runtime: tokio::runtime::Runtime)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// let is_child = fork(); // Outside of any runtime, while no other thread uses the pool.
    /// if is_child {
    ///     std::mem::forget(runtime); // The parent's: dropped here, it would break the parent's.
    ///     let runtime = tokio::runtime::Runtime::new()?;
    ///     runtime.block_on(async {
    ///         pool.reset_after_fork()?;
    ///         let connection = pool.check_out().await?; // The child's own.
    ///         # drop(connection);
    ///         Ok::<_, Box<dyn std::error::Error>>(())
    ///     })?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// No byte is written to a socket of the parent and none is said goodbye to; they are not even
    /// dropped, so that their descriptors stay open in the child until it ends or becomes another
    /// program. A server therefore sees the end of a connection that the parent closes when the child
    /// has ended, too. Connections and requests that were out when the process forked are lost to the
    /// child: the former refuse to [run](crate::PooledConnection::run) anything, the latter fail.
    ///
    /// A pool that has not been reset does so by itself when it notices: when it has to open a
    /// connection, or something is run on one of the parent's, which both fail then; the next attempt
    /// works. It does not ask who it is at each check-out, because asking takes longer than the
    /// check-out. Dropping a pool or a connection in a child leaves the parent's alone, whether it was
    /// reset or not.
    ///
    /// # Errors
    ///
    /// [`ForkError`]. The pool is then as it was, and cannot be used in this process.
    pub fn reset_after_fork(&self) -> Result<(), ForkError> {
        self.shared().reset_after_fork(Occasion::Asked)
    }
}

impl<K: Connector> Shared<K> {
    pub(crate) fn reset_after_fork(self: &Arc<Self>, occasion: Occasion) -> Result<(), ForkError> {
        if self.home.is_here() {
            return Ok(());
        }
        let runtime = Handle::try_current().map_err(|_| ForkError::NoRuntime)?;
        if runtime.id() == self.home.runtime().id() {
            return Err(ForkError::InheritedRuntime);
        }
        let mut desk = self.lock_after_fork()?;
        if self.home.is_here() {
            return Ok(()); // Another thread of the child was first.
        }
        self.home.move_here(runtime);
        let alarm = forget_the_parent(&mut desk, occasion);
        let (moment, mut woken) = (self.moment(&desk, true), Woken::default());
        desk.handle(self.now(), Input::ResetAfterFork, moment.wants_events, &mut woken);
        if occasion == Occasion::Asked {
            // Not even dropped: the last waker of a task drops the task, and that what it has open.
            std::mem::forget(std::mem::take(&mut woken));
        }
        self.settle(desk, moment, woken);
        self.home.start_timer(self, alarm);
        Ok(())
    }

    /// A connection is to be opened for a pool that is not at home in this process.
    pub(crate) fn notice_fork(self: &Arc<Self>, id: ConnId) {
        if self.reset_after_fork(Occasion::Opening).is_err() {
            let cause = home::inherited(Stage::Tcp);
            self.feed(Input::EstablishFailed { id, cause });
        }
    }

    fn lock_after_fork(&self) -> Result<MutexGuard<'_, Desk<K>>, ForkError> {
        for _ in 0..ATTEMPTS {
            match self.try_lock() {
                Some(desk) => return Ok(desk),
                None => thread::sleep(PAUSE),
            }
        }
        Err(ForkError::InUseAtFork)
    }
}

/// Takes from the desk what concerns the parent alone: what it has yet to do, to tell and to write, and
/// whom it would stop. Gives the new alarm of the timer: the old one would wake the parent's.
fn forget_the_parent<K: Connector>(desk: &mut Desk<K>, occasion: Occasion) -> Arc<Notify> {
    if occasion != Occasion::Opening {
        drop((desk.outbox.forget(), desk.news.forget()));
        desk.noted.closing = 0;
    }
    desk.state.stop_writing();
    desk.armed = None;
    desk.interrupts.clear();
    // Not dropped: the last handle of a task drops the task, and that what it has open.
    std::mem::forget(std::mem::take(&mut desk.opening));
    desk.emptied = Arc::default();
    desk.alarm = Arc::default();
    Arc::clone(&desk.alarm)
}

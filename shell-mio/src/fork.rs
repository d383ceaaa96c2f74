//! Before and after `fork`: a child process has its parent's memory and sockets, but only the thread that
//! forked.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::Connector;
use crate::event_loop::{EventLoop, Owner};
use crate::loop_thread::new_event_loop;
use crate::pool::Pool;

/// Why a pool could not be [reset](Pool::reset_after_fork) in a child process.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ForkError {
    /// A thread that used the pool at the moment of the fork does not exist in the child, and cannot
    /// release the pool's lock.
    #[error(
        "another thread used the pool at the moment of the fork, and its lock is held for ever: \
         fork within `while_quiet`, or make a new pool in the child"
    )]
    InUseAtFork,
    /// The operating system has no event loop, or no thread for it.
    #[error("no event loop for the pool: {0}")]
    EventLoop(Arc<io::Error>),
}

impl<K: Connector<EventLoop>> Pool<K> {
    /// Calls `work` while no other thread uses the pool, such as to `fork`: otherwise a child process may
    /// inherit a lock that is never released. Blocks until the event loop has finished its turn. `work` must
    /// not use the pool, and subscribers of the pool must not call this.
    pub fn while_quiet<R>(&self, work: impl FnOnce() -> R) -> R {
        self.driver().runtime().hold(|| self.driver().while_quiet(work))
    }

    /// Goes on in a child process after `fork`: without any connection, on an event loop and a thread of its
    /// own. To be called there before the pool is used.
    ///
    /// The parent's sockets are closed here without sending a byte, and stay open there. Connections that
    /// were checked out at the fork fail as interrupted. Whether the pool is ready or paused does not
    /// change; a client's monitors do not run in the child. Does nothing in the process that made the pool.
    ///
    /// Without this, in a child no connection can be opened, and commands on the parent's connections fail as
    /// interrupted.
    ///
    /// # Errors
    ///
    /// The operating system has no event loop or thread, or another thread held a lock at the fork: fork
    /// within [`while_quiet`](Self::while_quiet).
    // FK-02
    pub fn reset_after_fork(&self) -> Result<(), ForkError> {
        if !self.driver().is_inherited() {
            return Ok(());
        }
        let (event_loop, poll) = new_event_loop(Owner::Pool)?;
        self.move_to(event_loop.clone())?;
        Ok(self.thread().start(event_loop, poll)?)
    }

    /// Replaces the parent's event loop.
    pub(crate) fn move_to(&self, event_loop: EventLoop) -> Result<(), ForkError> {
        let parents = self.driver().runtime();
        // With a runtime to go on with, only the pool's lock can be in the way.
        self.driver().reset_after_fork(event_loop).map_err(|_| ForkError::InUseAtFork)?;
        parents.abandon();
        Ok(())
    }
}

impl From<io::Error> for ForkError {
    fn from(error: io::Error) -> Self {
        Self::EventLoop(Arc::new(error))
    }
}

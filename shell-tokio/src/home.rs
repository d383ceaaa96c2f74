//! Where a pool is at home: its process, its runtime, its timer.

use std::ops::{Deref, DerefMut};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::error::{ConnectionError, Stage};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::connector::Connector;
use crate::shared::Shared;
use crate::sync::Notify;
use crate::timer;

/// Where connections are opened and the timer runs.
pub(crate) struct Home {
    process: AtomicU32,
    place: Mutex<Place>,
}

struct Place {
    runtime: Handle,
    timer: Option<AbortHandle>,
}

impl Home {
    pub(crate) fn new(runtime: Handle) -> Self {
        let place = Mutex::new(Place { runtime, timer: None });
        Self { process: AtomicU32::new(process::id()), place }
    }

    pub(crate) fn runtime(&self) -> Handle {
        self.place().runtime.clone()
    }

    /// Whether this is the process that the pool lives in, and not a child of it. Asks the operating
    /// system, which takes longer than a check-out: for what happens seldom.
    pub(crate) fn is_here(&self) -> bool {
        self.process.load(Ordering::Relaxed) == process::id()
    }

    /// The pool lives here from now on. What belongs to the old place is not even dropped: it may
    /// hold what the parent uses.
    pub(crate) fn move_here(&self, runtime: Handle) {
        self.process.store(process::id(), Ordering::Relaxed);
        let old = std::mem::replace(&mut *self.place(), Place { runtime, timer: None });
        std::mem::forget(old);
    }

    pub(crate) fn start_timer<K: Connector>(&self, shared: &Arc<Shared<K>>, alarm: Arc<Notify>) {
        let runtime = self.runtime();
        let watch = timer::Watch { shared: Arc::clone(shared), alarm };
        // Not under the lock: a runtime that has ended drops it at once.
        let timer = runtime.spawn(timer::run(watch)).abort_handle();
        self.place().timer = Some(timer);
    }

    pub(crate) fn stop_timer(&self) {
        let timer = self.place().timer.take();
        timer.into_iter().for_each(|timer| timer.abort());
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection, and the process that opened it. In any other one it is never dropped, because that
/// would not be without consequences: tokio would take the socket out of the epoll instance, which
/// is the parent's, too, and whatever is said goodbye to is said so in the parent's name. The
/// descriptor stays open until the process ends or becomes another program.
pub(crate) struct Owned<C> {
    process: u32,
    /// There until it is dropped.
    connection: Option<C>,
}

impl<C> Owned<C> {
    pub(crate) fn new(connection: C) -> Self {
        Self { process: process::id(), connection: Some(connection) }
    }

    /// Fails in a child of the process that opened the connection.
    pub(crate) fn check(&self) -> Result<(), ConnectionError> {
        if self.process == process::id() { Ok(()) } else { Err(inherited(Stage::Operation)) }
    }
}

/// What somebody is told who has not called [`Pool::reset_after_fork`](crate::Pool::reset_after_fork).
pub(crate) fn inherited(stage: Stage) -> ConnectionError {
    let reason = "it belongs to the process that this one was forked from: call \
                  Pool::reset_after_fork first, in a runtime of this process";
    ConnectionError::configuration(stage, reason)
}

impl<C> Deref for Owned<C> {
    type Target = C;

    fn deref(&self) -> &C {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

impl<C> DerefMut for Owned<C> {
    fn deref_mut(&mut self) -> &mut C {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

impl<C> Drop for Owned<C> {
    fn drop(&mut self) {
        let connection = self.connection.take();
        if self.process != process::id() {
            std::mem::forget(connection);
        }
    }
}

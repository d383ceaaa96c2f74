use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use cenote_core::error::{ConnectionError, Stage};

use crate::runtime::Runtime;
use crate::runtime::process::Process;

/// A connection, and the process that opened it. In any other process it is
/// [discarded](Runtime::discard_inherited) instead of dropped.
// FK-01
pub(super) struct ForkGuarded<R: Runtime, C> {
    process: Process,
    /// There until it is dropped.
    connection: Option<C>,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Runtime, C> ForkGuarded<R, C> {
    pub(super) fn new(connection: C) -> Self {
        Self { process: Process::current(), connection: Some(connection), runtime: PhantomData }
    }

    /// The connection, in the process that opened it.
    pub(super) fn into_inner(mut self) -> Result<C, ConnectionError> {
        self.check()?;
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => unreachable!("it is there until it is dropped"),
        }
    }

    /// Fails in a child of the process that opened the connection.
    pub(super) fn check(&self) -> Result<(), ConnectionError> {
        if self.process.is_current() { Ok(()) } else { Err(inherited(Stage::Operation)) }
    }
}

/// The error of a child process that did not reset the pool.
pub(super) fn inherited(stage: Stage) -> ConnectionError {
    let reason = "it belongs to the process that this one was forked from: call \
                  Pool::reset_after_fork first, in a runtime of this process";
    ConnectionError::configuration(stage, reason)
}

impl<R: Runtime, C> Deref for ForkGuarded<R, C> {
    type Target = C;

    fn deref(&self) -> &C {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

impl<R: Runtime, C> DerefMut for ForkGuarded<R, C> {
    fn deref_mut(&mut self) -> &mut C {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

impl<R: Runtime, C> Drop for ForkGuarded<R, C> {
    fn drop(&mut self) {
        let connection = self.connection.take();
        if !self.process.is_current() {
            R::discard_inherited(connection);
        }
    }
}

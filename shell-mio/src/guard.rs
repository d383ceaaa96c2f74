use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

use cenote_core::error::{ConnectionError, InterruptedError, OperationError, Stage};
use cenote_core::pool::{ConnId, Health, Input, Purpose, ServiceId};

use crate::connector::Connector;
use crate::desk::Held;
use crate::failure;
use crate::interrupt::Interrupt;
use crate::shared::Shared;

/// A connection that is checked out. Dropped, it comes back, without waiting.
///
/// It comes back as broken, and is closed, when it was [marked so](Self::mark_errored), when it was
/// interrupted, or when the [connector finds fault](Connector::fault) with it, such as a reply that
/// was not read to its end.
pub struct PooledConnection<K: Connector> {
    shared: Arc<Shared<K>>,
    id: ConnId,
    /// There until the guard is dropped.
    held: Option<Box<Held<K>>>,
    /// Whether [`LeakDetector`](crate::leak::LeakDetector) know where it was checked out.
    is_noted: bool,
}

/// A guard's own, each by itself.
pub(crate) struct Parts<'c, K: Connector> {
    pub(crate) shared: &'c Arc<Shared<K>>,
    id: ConnId,
    pub(crate) connection: &'c mut K::Connection,
    pub(crate) interrupt: &'c Interrupt,
    error: &'c mut Option<ConnectionError>,
}

impl<K: Connector> PooledConnection<K> {
    pub(crate) fn new(
        shared: Arc<Shared<K>>,
        id: ConnId,
        held: Box<Held<K>>,
        place: &'static Location<'static>,
    ) -> Self {
        let is_noted = shared.holders.note(id, place);
        Self { shared, id, held: Some(held), is_noted }
    }

    /// The number of the connection, as in events: 1, 2, 3, … (CO-03).
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id.number()
    }

    /// The service at the other end, behind a load balancer.
    #[must_use]
    pub fn service_id(&self) -> Option<ServiceId> {
        self.shared.lock().state.service_of(self.id)
    }

    /// Whether the pool was cleared since the connection was made. An error on a stale connection
    /// says nothing about the server as it is now (SD-20).
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.shared.lock().state.is_stale(self.id)
    }

    /// The connection must not be used again. The first reason counts; each is shown to
    /// [`Builder::on_failure`](crate::Builder::on_failure).
    pub fn mark_errored(&mut self, error: ConnectionError) {
        failure::show(&self.shared, self.id, &error);
        self.held_mut().error.get_or_insert(error);
    }

    /// What the connection is used for from now on. Counted in load-balanced mode, for the text of
    /// a wait-queue timeout (LB-06). Does nothing to a connection of the process that this one was
    /// forked from.
    pub fn set_purpose(&mut self, purpose: Purpose) {
        if self.shared.is_foreign() {
            return;
        }
        let desk = self.shared.lock();
        // What was the parent's is forgotten in a child that goes on.
        if desk.interrupts.contains_key(&self.id) {
            self.shared.feed_under(desk, Input::Repurposed { id: self.id, purpose });
        }
    }

    /// Whether the pool has broken the connection off, which it does when it is cleared with an
    /// interrupt (INT-02). Nothing can be done with the connection then.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.held().interrupt.has_happened()
    }

    /// Does something with the connection that fails when the pool breaks it off: at once if the
    /// connector has an [interrupter](Connector::interrupter), otherwise when `operation` returns.
    /// A [`ConnectionError`] that leaves the connection unfit marks it; every one is shown to
    /// [`Builder::on_failure`](crate::Builder::on_failure) before this returns.
    ///
    /// Blocks for as long as `operation` does.
    ///
    /// # Errors
    ///
    /// That of `operation`, or [`OperationError::Interrupted`].
    pub fn run<'c, R>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> Result<R, ConnectionError>,
    ) -> Result<R, OperationError> {
        let Parts { shared, id, connection, interrupt, error } = self.parts();
        let interrupted = || InterruptedError::new(Arc::clone(&shared.address));
        // What goes on in a child process must not go to a socket of its parent.
        if interrupt.has_happened() || shared.is_foreign() {
            return Err(interrupted().into());
        }
        operation(connection).map_err(|cause| {
            // Whatever it says then, this is why.
            if interrupt.has_happened() {
                return interrupted().into();
            }
            failure::show(shared, id, &cause);
            if !cause.leaves_connection_healthy() {
                error.get_or_insert_with(|| cause.clone());
            }
            cause.into()
        })
    }

    pub(crate) fn parts(&mut self) -> Parts<'_, K> {
        let Self { shared, id, held, .. } = self;
        let Some(held) = held else { unreachable!("it is there until the guard is dropped") };
        let Held { connection, interrupt, error } = &mut **held;
        Parts { shared, id: *id, connection, interrupt, error }
    }

    fn held(&self) -> &Held<K> {
        match &self.held {
            Some(held) => held,
            None => unreachable!("it is there until the guard is dropped"),
        }
    }

    fn held_mut(&mut self) -> &mut Held<K> {
        match &mut self.held {
            Some(held) => held,
            None => unreachable!("it is there until the guard is dropped"),
        }
    }
}

impl<K: Connector> Deref for PooledConnection<K> {
    type Target = K::Connection;

    fn deref(&self) -> &K::Connection {
        &self.held().connection
    }
}

impl<K: Connector> DerefMut for PooledConnection<K> {
    fn deref_mut(&mut self) -> &mut K::Connection {
        &mut self.held_mut().connection
    }
}

impl<K: Connector> Drop for PooledConnection<K> {
    fn drop(&mut self) {
        let Some(mut conn) = self.held.take() else { return };
        if self.is_noted {
            self.shared.holders.forget(self.id);
        }
        let interrupted = || {
            let text = "interrupted by the pool";
            conn.interrupt.has_happened().then(|| ConnectionError::network(Stage::Operation, text))
        };
        let error = conn.error.take().or_else(interrupted);
        let error = error.or_else(|| self.shared.fault(&conn.connection));
        let health = error.map_or(Health::Healthy, Health::Errored);
        self.shared.check_in(self.id, conn, health);
    }
}

impl<K: Connector> fmt::Debug for PooledConnection<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledConnection")
            .field("id", &self.id())
            .field("address", &self.shared.address)
            .finish_non_exhaustive()
    }
}

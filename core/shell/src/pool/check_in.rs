//! Giving a connection back. As for [requests](super::request), the usual cases are apart.

use std::sync::Arc;

use cenote_core::error::{ConnectionError, Kind};
use cenote_core::pool::{Health, Input};

use super::collector::{FewEvents, NoEvents};
use super::driver::{InnerGuard, PoolDriver};
use super::types::{Operation, PooledSocket};
use crate::connection::Connector;
use crate::runtime::Runtime;
use crate::runtime::contain;
use crate::runtime::wake_list::WakeList;
use crate::trace::PanicGuard;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Checks a connection in that cannot be used as it is: because its caller has given up a command, or something went
    /// wrong with it.
    #[cold]
    #[inline(never)]
    pub(super) fn check_in_unfit(
        self: &Arc<Self>,
        mut conn: Box<PooledSocket<R, K>>,
        cause: ConnectionError,
        is_given_up: bool,
    ) {
        if matches!(cause.kind(), Kind::NetworkTimeout { .. }) {
            self.close_as_idle_as(&mut conn);
        }
        let health = self.health(&conn, cause, is_given_up);
        self.check_in_by_input(self.lock(), conn, health);
    }

    /// Checks a connection in that can be used again.
    #[inline(always)]
    pub(super) fn check_in_healthy(self: &Arc<Self>, conn: Box<PooledSocket<R, K>>) {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = self.lock();
        if inner.state.is_recording() && inner.is_recorded_by_input() {
            panic_guard.defuse();
            return self.check_in_by_input(inner, conn, Health::Healthy);
        }
        if self.wants_events() {
            panic_guard.defuse();
            return self.check_in_with_events(inner, conn);
        }
        let now = self.now_at_once(&inner);
        let outcome = inner.check_in_at_once(now, conn, &mut NoEvents);
        panic_guard.defuse();
        match outcome {
            Ok(()) => Self::release_at_once(inner),
            Err(conn) => self.hand_over(inner, conn),
        }
    }

    /// Checks a connection in that can be used again, when events are wanted.
    #[inline(never)]
    fn check_in_with_events(
        self: &Arc<Self>,
        inner: InnerGuard<'_, R, K>,
        conn: Box<PooledSocket<R, K>>,
    ) {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let mut events = FewEvents::default();
        let outcome = inner.check_in_at_once(self.now(), conn, &mut events);
        panic_guard.defuse();
        match outcome {
            Ok(()) => self.release_and_tell(inner, events),
            Err(conn) => self.check_in_by_input(inner, conn, Health::Healthy),
        }
    }

    /// Checks a connection in that can be used again, and for which a request probably waits.
    #[inline(never)]
    fn hand_over(self: &Arc<Self>, inner: InnerGuard<'_, R, K>, conn: Box<PooledSocket<R, K>>) {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let now = if inner.state.needs_now() { self.now() } else { inner.state.now() };
        let outcome = inner.hand_over_at_once(now, conn);
        panic_guard.defuse();
        match outcome {
            Ok(waiter) => {
                Self::release_at_once(inner);
                waiter.into_iter().for_each(Self::wake);
            }
            Err(conn) => self.check_in_by_input(inner, conn, Health::Healthy),
        }
    }

    /// Checks a connection in, by an input that is fed to the machine.
    #[inline(never)]
    fn check_in_by_input(
        self: &Arc<Self>,
        inner: InnerGuard<'_, R, K>,
        conn: Box<PooledSocket<R, K>>,
        health: Health<ConnectionError>,
    ) {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let context = self.context(&inner, false).of_use();
        let mut wakes = WakeList::default();
        let input = Input::CheckedIn { id: conn.id, conn, health };
        inner.handle(context.now, input, context.wants_events, &mut wakes);
        panic_guard.defuse();
        self.release_and_run(inner, context, wakes);
    }

    /// Of a connection that cannot be used as it is: after a timeout, and when its caller has given up, its reply may still
    /// come.
    fn health(
        &self,
        conn: &PooledSocket<R, K>,
        cause: ConnectionError,
        is_given_up: bool,
    ) -> Health<ConnectionError> {
        let is_in_doubt = conn.is_marked || conn.operation == Operation::Runs;
        let may_answer = is_given_up || matches!(cause.kind(), Kind::NetworkTimeout { .. });
        let ask = || self.connector().pending_response(&conn.connection);
        // After a panic the connection is not trusted.
        let pending = || contain(ask).unwrap_or_default();
        match (may_answer && !is_in_doubt).then(pending).flatten() {
            Some(request_id) => Health::PendingResponse { request_id, cause },
            None => Health::Errored(cause),
        }
    }
}

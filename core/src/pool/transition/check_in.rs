//! Checking in a connection.

use crate::pool::action::Action;
use crate::pool::event::{CloseReason, Event};
use crate::pool::id::ConnId;
use crate::pool::input::Health;
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::state::connections::{ConnState, Connection};
use crate::pool::status::Status;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// CheckedIn comes first, whatever follows. Then the connection is closed if it has perished or
    /// the pool is closed; otherwise it is available, and the oldest request is served with it at
    /// once.
    // WQ-08, EV-20, EV-27, PCL-06, OUT-08, OUT-22, IN-03, IN-04, T-07
    #[inline(always)]
    pub(super) fn check_in(
        &mut self,
        id: ConnId,
        conn: S::Conn,
        health: Health<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        if self.is_inherited(id) {
            // Closed when the child process began, with all the others.
            out.act(Action::CloseSocket { id, conn });
            return;
        }
        emit(out, || Event::ConnectionCheckedIn { connection_id: id.number() });
        if self.settings.adapts {
            self.note_use(id);
        }
        let error = match health {
            Health::Healthy => None,
            Health::PendingResponse { request_id, cause } if self.settings.pending_response => {
                return self.check_in_pending_response(id, conn, (request_id, cause), out);
            }
            Health::Errored(cause) | Health::PendingResponse { request_id: _, cause } => {
                Some(cause)
            }
        };
        match self.unfit(id, error) {
            Some((reason, error)) => {
                self.remove(id, reason, error, out);
                out.act(Action::CloseSocket { id, conn });
            }
            None => self.make_available(id, conn),
        }
    }

    /// Why a connection in use cannot go back into the pool, with the error, if so: errored before everything else.
    #[inline(always)]
    pub(super) fn unfit(
        &self,
        id: ConnId,
        error: Option<S::Cause>,
    ) -> Option<(CloseReason, Option<S::Cause>)> {
        if error.is_some() {
            return Some((CloseReason::Error, error));
        }
        let reason = self.reason_to_close(self.connections.known(id), self.now)?;
        let error = if reason == CloseReason::Error { self.cleared_by.clone() } else { None };
        Some((reason, error))
    }

    /// Why a connection in use that is healthy is closed at this time instead of being used again, if so: interrupted
    /// before stale before idle before closed, and surplus last. How long it was in use does not count.
    // CO-08, PCL-02, KX-05, IN-05, IN-07, CLR-04, INT-10, T-45
    #[inline(always)]
    pub(super) fn reason_to_close(
        &self,
        connection: &Connection<S::Conn>,
        now: Instant,
    ) -> Option<CloseReason> {
        if matches!(connection.state, ConnState::InUse { interrupted: true, .. }) {
            // Its socket is broken, even if the shell says otherwise (SI-12).
            return Some(CloseReason::Error);
        }
        if self.has_old_generation(connection) {
            return Some(CloseReason::Stale);
        }
        if connection.is_expired(now) {
            return Some(CloseReason::Idle);
        }
        if self.status == Status::Closed {
            return Some(CloseReason::PoolClosed);
        }
        self.has_surplus().then_some(CloseReason::Idle)
    }

    /// The idle time starts here.
    // AV-03, IN-06, T-53
    #[inline(always)]
    pub(super) fn make_available(&mut self, id: ConnId, conn: S::Conn) {
        assert_eq!(self.status, Status::Ready, "only a ready pool has connections to offer");
        self.connections.make_available(id, conn, self.now);
    }
}

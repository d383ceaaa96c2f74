//! Checking in a connection (IN-01 … IN-09).

use super::action::{Action, ActionSink, PoolTypes};
use super::connections::Doing;
use super::event::{CloseReason, Event};
use super::id::ConnId;
use super::input::{Health, Purpose};
use super::lists::List;
use super::state::{PoolState, Status, emit};

impl<S: PoolTypes> PoolState<S> {
    /// CheckedIn comes first, whatever follows (T-07). Then the connection is closed if it has
    /// perished or the pool is closed; otherwise it is available, and the oldest request is served
    /// with it at once (OUT-22).
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
        match self.unfit(id, health) {
            Some((reason, error)) => {
                self.remove(id, reason, error, out);
                out.act(Action::CloseSocket { id, conn });
            }
            None => self.make_available(id, conn),
        }
    }

    /// Why a connection in use cannot go back into the pool, if so: errored before stale before
    /// idle before closed (KX-05, T-45), and surplus last. How long it was in use does not count
    /// (IN-07).
    #[inline(always)]
    fn unfit(
        &self,
        id: ConnId,
        health: Health<S::Cause>,
    ) -> Option<(CloseReason, Option<S::Cause>)> {
        let connection = self.connections.known(id);
        if let Health::Errored(cause) = health {
            return Some((CloseReason::Error, Some(cause)));
        }
        if matches!(connection.doing, Doing::InUse { interrupted: true, .. }) {
            // Whatever the shell believes, its socket was broken (SI-12).
            return Some((CloseReason::Error, self.cleared_by.clone()));
        }
        if self.outdated(connection) {
            return Some((CloseReason::Stale, None));
        }
        if self.outlived(connection) {
            return Some((CloseReason::Idle, None));
        }
        if self.status == Status::Closed {
            return Some((CloseReason::PoolClosed, None));
        }
        self.has_surplus().then_some((CloseReason::Idle, None))
    }

    /// AV-03; the idle time starts here (T-53).
    #[inline(always)]
    pub(super) fn make_available(&mut self, id: ConnId, conn: S::Conn) {
        assert_eq!(self.status, Status::Ready, "only a ready pool has connections to offer");
        let was = self.connections.set(id, Doing::Available { conn, since: self.now });
        self.stop_use(&was);
    }

    /// A purpose counts while the connection is in use (LB-06).
    #[inline]
    pub(super) fn stop_use(&mut self, was: &Doing<S::Conn>) {
        if let Doing::InUse { purpose, .. } = was {
            let count = &mut self.purposes[*purpose as usize];
            *count = count.checked_sub(1).expect("counted when the use began");
        }
    }

    pub(super) fn repurpose(&mut self, id: ConnId, to: Purpose) {
        let connection = self.connections.known_mut(id);
        let Doing::InUse { purpose, .. } = &mut connection.doing else {
            unreachable!("permitted only in use")
        };
        let from = core::mem::replace(purpose, to);
        self.purposes[from as usize] -= 1;
        self.purposes[to as usize] += 1;
    }

    /// A peer may close what lies in the pool; whoever holds a connection finds out himself
    /// (SI-20). The minimum pauses, or a peer that takes connections and drops them at once would be
    /// asked again and again (T-37).
    pub(super) fn idle_closed_by_peer(
        &mut self,
        id: ConnId,
        cause: S::Cause,
        out: &mut impl ActionSink<S>,
    ) {
        let Some(connection) = self.connections.get(id) else { return };
        if matches!(connection.doing, Doing::Available { .. }) {
            self.close_available(id, CloseReason::Error, Some(cause), out);
            self.pause_population();
        }
    }

    /// Closes a connection that lies in the pool, socket and all.
    #[inline(never)]
    pub(super) fn close_available(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        let Doing::Available { conn, .. } = self.remove(id, reason, error, out) else {
            unreachable!("an available connection")
        };
        out.act(Action::CloseSocket { id, conn });
    }

    /// Closing a connection, as far as the pool is concerned: it counts no longer, then
    /// ConnectionClosed is emitted; the socket comes after that (KX-01, KX-03, T-11).
    #[inline(never)]
    pub(super) fn remove(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) -> Doing<S::Conn> {
        let connection = self.connections.remove(id);
        self.stop_use(&connection.doing);
        if let Some(service) = connection.service {
            self.services.leave(service);
        }
        emit(out, || Event::ConnectionClosed { connection_id: id.number(), reason, error });
        connection.doing
    }

    /// More connections than the maximum, since it shrank.
    #[inline]
    pub(super) fn has_surplus(&self) -> bool {
        self.connections.total() > self.settings.max_total
    }

    /// Closes every available connection that `unwanted` names, oldest first.
    pub(super) fn close_available_where(
        &mut self,
        unwanted: impl Fn(&Self, ConnId) -> Option<CloseReason>,
        out: &mut impl ActionSink<S>,
    ) {
        let mut next = self.connections.first(List::Available);
        while let Some(id) = next {
            next = self.connections.next(id);
            if let Some(reason) = unwanted(self, id) {
                self.close_available(id, reason, None, out);
            }
        }
    }
}

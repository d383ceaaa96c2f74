//! Closing a connection: when it may not be used any longer, and how it leaves the pool.

use crate::pool::action::Action;
use crate::pool::error::CheckOutError;
use crate::pool::event::{CloseReason, Event};
use crate::pool::id::ConnId;
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::state::connections::{ConnState, Connection};
use crate::pool::state::lists::List;
use crate::pool::state::request::Request;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Closes an available connection and its socket.
    #[inline(never)]
    pub(super) fn close_available(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        let ConnState::Available { conn, .. } = self.remove(id, reason, error, out) else {
            unreachable!("an available connection")
        };
        out.act(Action::CloseSocket { id, conn });
    }

    /// Closes every available connection that `unwanted` names, oldest first; then those that are
    /// pending a response.
    pub(super) fn close_available_where(
        &mut self,
        unwanted: impl Fn(&Self, ConnId) -> Option<CloseReason>,
        out: &mut impl ActionSink<S>,
    ) {
        for list in [List::Available, List::PendingResponse] {
            let mut next = self.connections.first(list);
            while let Some(id) = next {
                next = self.connections.next(id);
                if let Some(reason) = unwanted(self, id) {
                    self.close_available(id, reason, None, out);
                }
            }
        }
    }

    /// The run that a clear schedules at once, unless maintenance never runs.
    // CLR-04, CLR-14, BG-03, BG-05, BG-10, T-35
    pub(super) fn prune_stale(&mut self, out: &mut impl ActionSink<S>) {
        if self.settings.pause_after_failure.is_some() {
            self.close_available_where(
                |pool, id| {
                    pool.has_old_generation(pool.connections.known(id))
                        .then_some(CloseReason::Stale)
                },
                out,
            );
        }
    }

    /// A peer may close an available connection; the user of one in use notices by itself. If the
    /// connection is that young, the minimum pauses, or a peer that takes connections and drops them
    /// at once would be asked again and again.
    // SI-20, T-37
    pub(super) fn idle_closed_by_peer(
        &mut self,
        id: ConnId,
        cause: S::Cause,
        out: &mut impl ActionSink<S>,
    ) {
        let Some(connection) = self.connections.get(id) else { return };
        if matches!(connection.state, ConnState::Available { .. }) {
            let created = connection.created;
            self.close_available(id, CloseReason::Error, Some(cause), out);
            if self
                .settings
                .pause_after_failure
                .is_some_and(|pause| self.now < created.after(pause))
            {
                self.pause_population();
            }
        }
    }

    /// Stops establishing a connection, and returns the request that owned it.
    pub(super) fn abort_establishment(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) -> Option<Request<S::Waiter>> {
        let owner = self.take_owner(id);
        self.remove(id, reason, error, out);
        out.act(Action::AbortEstablish { id });
        owner
    }

    /// Stops establishing every pending connection, oldest first, and fails the requests that own
    /// them with `outcome`.
    // PCL-09, INT-09, SI-06
    pub(super) fn abort_pending(
        &mut self,
        reason: impl Fn(&Self, ConnId) -> CloseReason,
        error: Option<&S::Cause>,
        outcome: &CheckOutError<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        while let Some(id) = self.connections.first(List::Pending) {
            let reason = reason(self, id);
            let owner = self.abort_establishment(id, reason, error.cloned(), out);
            if let Some(request) = owner {
                self.fail(request, outcome.clone(), out);
            }
        }
        let drains = self.connections.len(List::Draining) as usize;
        assert_eq!(self.owners.len(), drains, "an owner owns a pending or draining connection");
    }

    /// Closing a connection, as far as the pool is concerned: it no longer counts, then
    /// ConnectionClosed is emitted; the socket comes after that.
    // KX-01, KX-03, T-11
    #[inline(never)]
    pub(super) fn remove(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) -> ConnState<S::Conn> {
        let connection = self.connections.remove(id);
        if let Some(service) = connection.service {
            self.services.leave(service);
        }
        self.pending_responses.remove(id);
        emit(out, || Event::ConnectionClosed { connection_id: id.number(), reason, error });
        connection.state
    }

    /// Stale before idle. Only an available connection can be idle, and only one that is available or
    /// drains reaches the end of its life before it is checked in.
    // CO-08, CO-10, KX-05
    #[inline(always)]
    pub(super) fn perished(&self, id: ConnId) -> Option<CloseReason> {
        let connection = self.connections.known(id);
        if self.has_old_generation(connection) {
            return Some(CloseReason::Stale);
        }
        let ConnState::Available { since, .. } = connection.state else {
            let drains = matches!(connection.state, ConnState::Draining { .. });
            return (drains && connection.is_expired(self.now)).then_some(CloseReason::Idle);
        };
        let idled_out =
            self.settings.max_idle.is_some_and(|max_idle| self.now > since.after(max_idle));
        (idled_out || connection.is_expired(self.now)).then_some(CloseReason::Idle)
    }

    /// A connection is stale when its generation is not that of the pool, or of its service. In
    /// load-balanced mode it belongs to no service before its hello is done, and nothing can have
    /// made it stale.
    // CO-09, CLB-06, LB-04
    #[inline]
    pub(in crate::pool) fn has_old_generation(&self, connection: &Connection<S::Conn>) -> bool {
        let current = match connection.service {
            Some(service) => self.services.generation(service),
            None => Some(self.generation),
        };
        current != Some(connection.generation)
    }

    /// More connections than the maximum, since it shrank.
    #[inline]
    pub(in crate::pool) fn has_surplus(&self) -> bool {
        self.connections.total() > self.settings.max_total
    }
}

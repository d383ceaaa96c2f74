//! The two inputs of every operation where nothing else follows from them: a check-out that an
//! available connection serves, and the check-in of a healthy connection that no request waits for.

use crate::pool::id::{ConnId, WaiterId};
use crate::pool::input::Purpose;
use crate::pool::state::PoolState;
use crate::pool::state::connections::ConnState;
use crate::pool::status::Status;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Decides as [`handle`](Self::handle) does on a `CheckOutRequested` with any deadline, if an
    /// available connection serves it and that is all that happens. Its one action would be the
    /// `Deliver` of what is returned.
    ///
    /// For shells without subscribers at the moment: no event is emitted. It costs less than `handle`,
    /// because no input and no action is built. `None` says nothing about the request: feed `handle` with it, at the same time.
    ///
    /// `now` need not be fresh unless [`needs_now_at_once`](Self::needs_now_at_once).
    #[inline(always)]
    pub fn check_out_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        purpose: Purpose,
    ) -> Option<(ConnId, S::Conn)> {
        if self.last_waiter >= Some(id) || !self.is_quiet(now) {
            return None;
        }
        let choice = self.first_choice()?;
        self.now = now;
        if self.perished(choice).is_some() {
            return None;
        }
        self.last_waiter = Some(id);
        Some((choice, self.connections.check_out(choice, now, purpose)))
    }

    /// Decides as [`handle`](Self::handle) does on a `CheckedIn` with `Healthy`, if the connection
    /// becomes available and that is all that happens: no action follows.
    ///
    /// For shells without subscribers at the moment: no event is emitted. `now` need not be fresh
    /// unless [`needs_now_at_once`](Self::needs_now_at_once).
    ///
    /// # Errors
    ///
    /// The payload, if more would happen: feed `handle` with it, at the same time.
    #[inline(always)]
    pub fn check_in_at_once(
        &mut self,
        now: Instant,
        id: ConnId,
        conn: S::Conn,
    ) -> Result<(), S::Conn> {
        if !self.is_quiet(now) || self.has_surplus() || !self.is_reusable(id, now) {
            return Err(conn);
        }
        self.now = now;
        self.make_available(id, conn);
        Ok(())
    }

    /// Whether the time matters to [`check_out_at_once`](Self::check_out_at_once) and
    /// [`check_in_at_once`](Self::check_in_at_once). If not, the shell may pass the last `now` again,
    /// with the consequence that [`needs_now`](Self::needs_now) describes. Limits for waiting do not
    /// matter to these two.
    #[inline(always)]
    pub fn needs_now_at_once(&self) -> bool {
        self.settings.shortest_use.is_some() || self.connections.next_expiry().is_some()
    }

    /// Whether a shell whose timer is set to `armed`, no later than the deadlines before the last
    /// input, may leave it so, because that was a check-out or a check-in. `false` if finding that
    /// out takes as long as [`next_deadline`](Self::next_deadline).
    #[inline(always)]
    pub fn keeps_deadline(&self, armed: Instant) -> bool {
        let soonest = self.settings.shortest_use.map(|limit| self.now.after(limit));
        soonest.is_none_or(|soonest| armed <= soonest)
            && self.queue.is_empty()
            && self.populate_after.is_none()
            && self.pending_responses.next_due().is_none()
    }

    /// Whether no other work follows from an input at this time.
    #[inline(always)]
    fn is_quiet(&self, now: Instant) -> bool {
        self.status == Status::Ready
            && self.queue.is_empty()
            && !self.is_below_minimum()
            && now >= self.now
    }

    /// Whether a connection is in use and may become available at this time.
    #[inline(always)]
    fn is_reusable(&self, id: ConnId, now: Instant) -> bool {
        let Some(connection) = self.connections.get(id) else { return false };
        matches!(connection.state, ConnState::InUse { interrupted: false, .. })
            && !self.outdated(connection)
            && connection.expires.is_none_or(|expires| now < expires)
    }
}

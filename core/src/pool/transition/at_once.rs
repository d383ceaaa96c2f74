//! The usual cases of the inputs that come all the time: a check-out that an available connection
//! serves or that has to wait, the check-in of a healthy connection that becomes available or
//! serves the oldest request, and the cancellation of a request that waits.

use crate::pool::error::CheckOutError;
use crate::pool::event::{Elapsed, Event};
use crate::pool::id::{ConnId, WaiterId};
use crate::pool::input::Purpose;
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::state::connections::ConnState;
use crate::pool::state::lists::List;
use crate::pool::state::request::Request;
use crate::pool::status::Status;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Decides as [`handle`](Self::handle) does on a `CheckOutRequested` with any deadline, if an
    /// available connection serves it and that is all that happens. Its one action would be the
    /// `Deliver` of what is returned.
    ///
    /// `out` gets the events, if it has a use for them, and nothing else. This costs less than `handle`, because
    /// neither the input nor the action is built. `None` says nothing about the request, and no event was
    /// emitted: feed `handle` with it, at the same time.
    ///
    /// `now` need not be fresh unless [`needs_now_at_once`](Self::needs_now_at_once).
    #[inline(always)]
    pub fn check_out_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) -> Option<(ConnId, S::Conn)> {
        if self.last_waiter >= Some(id) || !self.queue.is_empty() || !self.is_quiet(now) {
            return None;
        }
        let choice = self.first_choice()?;
        self.now = now;
        if self.perished(choice).is_some() {
            return None;
        }
        self.last_waiter = Some(id);
        emit(out, || Event::ConnectionCheckOutStarted { request: id });
        emit(out, || Event::ConnectionCheckedOut {
            connection_id: choice.number(),
            request: id,
            duration: Elapsed::ZERO,
        });
        Some((choice, self.connections.check_out(choice, now, purpose)))
    }

    /// Decides as [`handle`](Self::handle) does on a `CheckedIn` with `Healthy`, if the connection
    /// becomes available and that is all that happens: no action follows.
    ///
    /// `out` gets the events, if it has a use for them, and nothing else. `now` need not be fresh
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
        out: &mut impl ActionSink<S>,
    ) -> Result<(), S::Conn> {
        if !self.queue.is_empty() || !self.is_quiet(now) || !self.is_fit(id, now) {
            return Err(conn);
        }
        self.now = now;
        emit(out, || Event::ConnectionCheckedIn { connection_id: id.number() });
        self.make_available(id, conn);
        Ok(())
    }

    /// Decides as [`handle`](Self::handle) does on a `CheckOutRequested`, if the request enters the
    /// wait queue and that is all that happens: no action follows. Returns when it times out; the shell
    /// sets its timer to that, if it is set to a later time or not at all.
    ///
    /// `out` gets the event, if it has a use for it, and nothing else. `now` has to be fresh if the
    /// request has a deadline, or the pool [needs it](Self::needs_now).
    ///
    /// # Errors
    ///
    /// The waiter, if anything else would happen: feed `handle` with it, at the same time.
    #[inline(always)]
    pub fn enqueue_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        waiter: S::Waiter,
        deadline: Option<Instant>,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) -> Result<Option<Instant>, S::Waiter> {
        let is_served = self.may_create() || self.first_choice().is_some();
        let limit = deadline.or_else(|| self.settings.max_wait.map(|max| now.after(max)));
        let is_due = limit.is_some_and(|limit| limit <= now);
        let waits = self.last_waiter < Some(id) && !is_served && !is_due && !self.is_queue_full();
        if !waits || !self.is_quiet(now) || self.has_work_for_queue(now) {
            return Err(waiter);
        }
        self.now = now;
        self.last_waiter = Some(id);
        emit(out, || Event::ConnectionCheckOutStarted { request: id });
        let deadline = (limit, deadline.is_some());
        self.queue.push(Request::new(id, waiter, now, deadline, purpose));
        Ok(limit)
    }

    /// Decides as [`handle`](Self::handle) does on a `CheckedIn` with `Healthy`, if the connection
    /// serves the oldest request and that is all that happens. Its one action would be the `Deliver`
    /// of what is returned.
    ///
    /// `out` gets the events, if it has a use for them, and nothing else. `now` need not be fresh unless
    /// the pool [needs it](Self::needs_now).
    ///
    /// # Errors
    ///
    /// The payload, if no request waits or anything else would happen: feed `handle` with it, at the
    /// same time.
    #[inline(always)]
    pub fn hand_over_at_once(
        &mut self,
        now: Instant,
        id: ConnId,
        conn: S::Conn,
        out: &mut impl ActionSink<S>,
    ) -> Result<(S::Waiter, S::Conn), S::Conn> {
        if !self.is_quiet(now) || !self.is_fit(id, now) || self.has_work_for_queue(now) {
            return Err(conn);
        }
        let Some(request) = self.queue.pop() else { return Err(conn) };
        let Request { id: request, waiter, purpose, started, .. } = request;
        self.now = now;
        let connection_id = id.number();
        emit(out, || Event::ConnectionCheckedIn { connection_id });
        let duration = Elapsed::between(started, now);
        emit(out, || Event::ConnectionCheckedOut { connection_id, request, duration });
        self.connections.reuse(id, now, purpose);
        Ok((waiter, conn))
    }

    /// Decides as [`handle`](Self::handle) does on a `CheckOutCancelled`, if the request leaves the wait
    /// queue before its time is over and that is all that happens. Its one action would be the `Deliver` of
    /// [`Cancelled`](CheckOutError::Cancelled) to the waiter that is returned. The shell's timer may be left as it is.
    ///
    /// `out` gets the event, if it has a use for it, and nothing else. `None` says nothing about the request, and no
    /// event was emitted: feed `handle` with it, at the same time. `now` need not be fresh unless the
    /// pool [needs it](Self::needs_now).
    #[inline]
    pub fn cancel_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        out: &mut impl ActionSink<S>,
    ) -> Option<S::Waiter> {
        let may_owners_be_due =
            self.owners_due.is_some() || self.connections.len(List::Draining) > 0;
        if may_owners_be_due || !self.is_quiet(now) || self.has_work_for_queue(now) {
            return None;
        }
        let Request { waiter, started, .. } = self.queue.remove_in_time(id, now)?;
        self.now = now;
        emit(out, || Event::ConnectionCheckOutFailed {
            request: id,
            error: CheckOutError::Cancelled,
            duration: Elapsed::between(started, now),
        });
        Some(waiter)
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
        self.keeps_deadline_at_once(armed)
            && self.queue.is_empty()
            && self.owners_due.is_none()
            && self.populate_after.is_none()
            && self.pacing.not_before.is_none()
            && self.pending_responses.next_due().is_none()
            // A connection that this input has started.
            && self.settings.unanswered_threshold.is_none_or(|limit| armed <= self.now.after(limit))
    }

    /// Whether a timer that is set to `armed`, no later than the deadlines before the last input, may be
    /// left so, because that input was handled by [`check_out_at_once`](Self::check_out_at_once),
    /// [`check_in_at_once`](Self::check_in_at_once) or [`hand_over_at_once`](Self::hand_over_at_once).
    #[inline(always)]
    pub fn keeps_deadline_at_once(&self, armed: Instant) -> bool {
        let soonest = self.settings.shortest_use.map(|limit| self.now.after(limit));
        soonest.is_none_or(|soonest| armed <= soonest)
    }

    /// Whether an input at this time is no reason to open connections or to refuse requests.
    #[inline(always)]
    fn is_quiet(&self, now: Instant) -> bool {
        let total = self.connections.total();
        self.status == Status::Ready && total >= self.settings.quiet_total && now >= self.now
    }

    /// Whether a request has waited for too long by this time, may take a connection that is pending
    /// a response, or may be shed later because of those that are served now.
    #[inline(always)]
    fn has_work_for_queue(&self, now: Instant) -> bool {
        self.settings.has_queue_policy || self.queue.next_deadline().is_some_and(|due| due < now)
    }

    /// Whether a connection is in use and not unfit at this time.
    #[inline(always)]
    fn is_fit(&self, id: ConnId, now: Instant) -> bool {
        let Some(connection) = self.connections.get(id) else { return false };
        matches!(connection.state, ConnState::InUse { .. })
            && self.reason_to_close(connection, now).is_none()
    }
}

//! A request to check out.

use crate::pool::id::WaiterId;
use crate::pool::input::Purpose;
use crate::pool::time::Instant;

/// A request that has not had its outcome. `Request<()>` is one without its waiter.
#[derive(Clone, Debug)]
pub(in crate::pool) struct Request<W> {
    pub(in crate::pool) id: WaiterId,
    pub(in crate::pool) waiter: W,
    pub(in crate::pool) started: Instant,
    /// When it stops waiting, whether its caller or `waitQueueTimeoutMS` set the limit.
    pub(in crate::pool) deadline: Option<Instant>,
    /// Whether the caller set it, so that it covers establishment, too.
    pub(in crate::pool) deadline_is_callers: bool,
    pub(in crate::pool) purpose: Purpose,
    /// For the wait queue alone: no earlier request has a later deadline, or this one has none.
    /// Stored here because a field beside the request would cost eight bytes of padding.
    pub(super) in_order: bool,
}

impl<W> Request<W> {
    pub(in crate::pool) const fn new(
        id: WaiterId,
        waiter: W,
        started: Instant,
        (deadline, deadline_is_callers): (Option<Instant>, bool),
        purpose: Purpose,
    ) -> Self {
        Self { id, waiter, started, deadline, deadline_is_callers, purpose, in_order: true }
    }

    pub(in crate::pool) const fn without_waiter(&self) -> Request<()> {
        let &Self { id, waiter: _, started, deadline, deadline_is_callers, purpose, in_order } =
            self;
        Request { id, waiter: (), started, deadline, deadline_is_callers, purpose, in_order }
    }

    /// When it stops waiting for a connection that is established for it.
    // OP-08
    pub(in crate::pool) const fn callers_deadline(&self) -> Option<Instant> {
        if self.deadline_is_callers { self.deadline } else { None }
    }

    /// The request while a connection is established for it, as far as its deadline goes.
    pub(in crate::pool) fn while_established(self) -> Self {
        Self { deadline: self.callers_deadline(), ..self }
    }

    /// Whether it may wait no longer.
    pub(in crate::pool) fn is_due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

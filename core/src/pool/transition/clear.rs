//! Ready and clear: the life of a generation.

use crate::pool::action::Action;
use crate::pool::error::CheckOutError;
use crate::pool::event::{CloseReason, Event, PendingResponseFailure};
use crate::pool::id::ServiceId;
use crate::pool::options::{InvalidOptions, PoolOptions};
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::state::lists::List;
use crate::pool::status::Status;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Makes a pool that is ready from the beginning, where no monitor marks it ready: emits
    /// `ConnectionPoolCreated` but no `ConnectionPoolReady`, and starts the connections of the minimum
    /// with their events. In all else it is as a [new](Self::new) pool that was fed
    /// [`Ready`](crate::pool::Input::Ready).
    ///
    /// # Errors
    ///
    /// When no pool can work with these options; then nothing is emitted.
    pub fn new_ready(
        now: Instant,
        options: PoolOptions,
        out: &mut impl ActionSink<S>,
    ) -> Result<Self, InvalidOptions> {
        let mut pool = Self::new(now, options, out)?;
        pool.status = Status::Ready;
        if pool.is_below_minimum() {
            pool.populate(out);
        }
        Ok(pool)
    }

    /// Only a paused pool becomes ready, and says so before anything is created: the minimum is
    /// seen to after this. The generation stays, so that connections from before the clear stay
    /// stale. Those that are still being established would never be used: they are closed, and
    /// leave their permits to new ones.
    // SI-07, PS-10, PS-16, PS-18, EV-11, LG-36, LG-38, PRD-01, PRD-02, PRD-03, PRD-04, PRD-06, T-01
    pub(super) fn ready(&mut self, out: &mut impl ActionSink<S>) {
        if self.status != Status::Paused {
            return;
        }
        self.status = Status::Ready;
        self.populate_after = None;
        self.pacing.forgive();
        emit(out, || Event::ConnectionPoolReady);
        if !self.old_rules {
            let failure = CheckOutError::PoolCleared { cause: self.cleared_by.clone() };
            self.abort_pending(|_, _| CloseReason::Stale, None, &failure, out);
        }
    }

    /// A new generation begins, even in a paused pool, and the pool is paused. Then, in this order:
    /// PoolCleared, unless the pool was paused already; the requests that wait fail, oldest first;
    /// connections that are being established or used are interrupted, if asked for, in a paused
    /// pool, too; draining ones are closed, and the requests that wait for them fail; and available
    /// ones, all stale by now, are closed at once.
    // PS-09, EV-12, LG-38, PO-11, CLR-02, CLR-03, CLR-05, CLR-11, CLR-12, INT-04
    // CLR-07, T-02, CLR-06, CLR-08, CLR-10, INT-12, CLR-14
    pub(super) fn clear(&mut self, cause: S::Cause, interrupt: bool, out: &mut impl ActionSink<S>) {
        if self.status == Status::Closed {
            return;
        }
        let was = core::mem::replace(&mut self.status, Status::Paused);
        self.generation += 1;
        self.cleared_by = Some(cause.clone());
        let failure = CheckOutError::PoolCleared { cause: Some(cause) };
        if was == Status::Ready {
            emit(out, || Event::ConnectionPoolCleared {
                service_id: None,
                interrupt_in_use_connections: interrupt,
            });
        }
        self.fail_waiting(&failure, out);
        if interrupt {
            self.interrupt(&failure, out);
        }
        let cause = self.cleared_by.clone();
        let closed =
            if interrupt { (CloseReason::Error, cause) } else { (CloseReason::Stale, None) };
        let all = |_: &Self, _| Some(closed.clone());
        self.abort_drains_where(all, PendingResponseFailure::Error, Some(&failure), out);
        self.prune_stale(out);
    }

    /// Everything that exists is of the generation before this clear or older, so it is all
    /// interrupted: pending connections are closed at once, those in use when they are checked in.
    // INT-01, INT-02, INT-03, INT-05, INT-09, INT-13, BG-03, T-42, SI-12
    fn interrupt(&mut self, failure: &CheckOutError<S::Cause>, out: &mut impl ActionSink<S>) {
        let cause = self.cleared_by.clone();
        self.abort_pending(|_, _| CloseReason::Error, cause.as_ref(), failure, out);
        for list in [List::Overdue, List::InUse] {
            let mut next = self.connections.first(list);
            while let Some(id) = next {
                next = self.connections.next(id);
                if self.connections.interrupt(id) {
                    out.act(Action::Interrupt { id });
                }
            }
        }
    }

    /// A new generation of one service begins. The pool is not paused and no waiting request fails;
    /// one that waits for the end of a drain is served again.
    /// Without a connection of that service nothing can be stale, and there is no event.
    // WQ-11, EV-12, EV-25, CLB-01, CLB-03, CLB-04, CLB-05, LB-05, SI-17
    pub(super) fn clear_service(
        &mut self,
        cause: S::Cause,
        service: ServiceId,
        out: &mut impl ActionSink<S>,
    ) {
        if self.status == Status::Closed || !self.services.clear(service, cause) {
            return;
        }
        emit(out, || Event::ConnectionPoolCleared {
            service_id: Some(service),
            interrupt_in_use_connections: false,
        });
        let stale = |pool: &Self, id| {
            let is_stale = pool.has_old_generation(pool.connections.known(id));
            is_stale.then_some((CloseReason::Stale, None))
        };
        self.abort_drains_where(stale, PendingResponseFailure::Error, None, out);
        self.prune_stale(out);
    }
}

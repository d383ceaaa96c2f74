//! The lifecycle of the pool: ready, cleared, closed, forked.

use cenote_core::pool::{
    Action, CheckOutError, CloseReason, ConnId, Event, PendingResponseFailure, PoolTypes,
    ServiceId, Status,
};

use super::pace::Pace;
use super::{Model, Phase};

impl<S: PoolTypes> Model<S> {
    // PRD-01, PRD-02, PRD-04.
    pub(super) fn ready(&mut self) {
        if self.status == Status::Paused {
            self.status = Status::Ready;
            self.populate_after = None;
            (self.pace.overloads, self.pace.not_before) = (0, None);
            self.emit(Event::ConnectionPoolReady);
            // SI-07.
            let failure = CheckOutError::PoolCleared { cause: self.cleared_by.clone() };
            self.abort_pending(|_, _| CloseReason::Stale, None, &failure);
        }
    }

    // CLR-01 … CLR-14, INT-01 … INT-12; a closed pool ignores it.
    pub(super) fn clear(&mut self, cause: &S::Cause, interrupt: bool) {
        if self.status == Status::Closed {
            return;
        }
        // CLR-06: only a ready pool emits PoolCleared.
        let announce = self.status == Status::Ready;
        self.status = Status::Paused;
        // CLR-07: even if it was paused.
        self.generation += 1;
        self.cleared_by = Some(cause.clone());
        if announce {
            self.emit(Event::ConnectionPoolCleared {
                service_id: None,
                interrupt_in_use_connections: interrupt,
            });
        }
        let failure = CheckOutError::PoolCleared { cause: Some(cause.clone()) };
        self.fail_waiting(&failure);
        if interrupt {
            self.abort_pending(|_, _| CloseReason::Error, Some(cause), &failure);
            self.interrupt_in_use();
        }
        let cause = Some(cause.clone());
        let closed =
            if interrupt { (CloseReason::Error, cause) } else { (CloseReason::Stale, None) };
        self.abort_drains(
            |_, _| Some(closed.clone()),
            PendingResponseFailure::Error,
            Some(&failure),
        );
        self.prune_stale();
    }

    // INT-02: each once, the one checked out first is the first.
    fn interrupt_in_use(&mut self) {
        for connection in &mut self.connections {
            if let Phase::InUse { interrupted: interrupted @ false, .. } = &mut connection.phase {
                *interrupted = true;
                self.actions.push(Action::Interrupt { id: connection.id });
            }
        }
    }

    // CLB-01 … CLB-05; ignored for a service without connections.
    pub(super) fn clear_service(&mut self, cause: &S::Cause, service: ServiceId) {
        if self.status == Status::Closed {
            return;
        }
        self.clears.push(service);
        if self.generation_of(service).is_none() {
            return;
        }
        for known in &mut self.services {
            if known.id == service {
                known.generation += 1;
                known.cleared_by = Some(cause.clone());
            }
        }
        self.emit(Event::ConnectionPoolCleared {
            service_id: Some(service),
            interrupt_in_use_connections: false,
        });
        self.abort_drains(
            |model, id| model.is_stale(id).then_some((CloseReason::Stale, None)),
            PendingResponseFailure::Error,
            None,
        );
        self.prune_stale();
    }

    // BG-05, BG-10: closes stale available connections, oldest first, unless there is no
    // maintenance.
    pub(super) fn prune_stale(&mut self) {
        for id in self.available_or_pending_response() {
            if self.runs() && self.is_stale(id) {
                self.close_available(id, CloseReason::Stale, None);
            }
        }
    }

    // PCL-04, SI-05, SI-06: requests in arrival order, then available connections, then PoolClosed
    //.
    pub(super) fn close(&mut self) {
        if self.status == Status::Closed {
            return;
        }
        self.status = Status::Closed;
        self.populate_after = None;
        // SI-01: stale comes before poolClosed.
        self.abort_pending(
            |model, id| model.perished(id).unwrap_or(CloseReason::PoolClosed),
            None,
            &CheckOutError::PoolClosed,
        );
        self.abort_drains(
            |model, id| Some((model.perished(id).unwrap_or(CloseReason::PoolClosed), None)),
            PendingResponseFailure::Error,
            Some(&CheckOutError::PoolClosed),
        );
        self.fail_waiting(&CheckOutError::PoolClosed);
        for id in self.available_or_pending_response() {
            let reason = self.perished(id).unwrap_or(CloseReason::PoolClosed);
            self.close_available(id, reason, None);
        }
        self.emit(Event::ConnectionPoolClosed);
    }

    fn available_or_pending_response(&self) -> Vec<ConnId> {
        let mut all = self.available();
        all.extend(self.pending_response());
        all
    }

    // FK-01, T-74: nothing is left, and the status stays.
    pub(super) fn reset_after_fork(&mut self) {
        self.generation += 1;
        self.populate_after = None;
        self.pace = Pace::default();
        self.inherited = self.created;
        let outcome = CheckOutError::PoolCleared { cause: self.cleared_by.clone() };
        self.abort_pending(|_, _| CloseReason::Stale, None, &outcome);
        self.abort_drains(
            |_, _| Some((CloseReason::Stale, None)),
            PendingResponseFailure::Error,
            Some(&outcome),
        );
        self.fail_waiting(&outcome);
        for id in self.available_or_pending_response() {
            self.close_available(id, CloseReason::Stale, None);
        }
        for id in self.in_use() {
            self.close_connection(id, CloseReason::Stale, None);
        }
    }
}

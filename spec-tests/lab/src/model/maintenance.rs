//! Maintenance, and its deadlines.

use std::time::Duration;

use cenote_core::pool::{
    Action, CloseReason, ConnId, Deadline, DeadlineReason, Instant, PoolOptions, PoolTypes,
};

use super::view::owner_of;
use super::{Connection, Model, Phase};

impl<S: PoolTypes> Model<S> {
    // BG-07: everything that is due, pruning first.
    pub(super) fn run(&mut self) {
        self.time_out(|deadline, now| deadline <= now);
        self.time_out_owners(|deadline, now| deadline <= now);
        if self.runs() {
            self.close_idle();
            self.close_at_end_of_life();
        }
        self.report_leak();
        self.report_unanswered();
        self.give_up_drains();
        self.shed(|at, now| at <= now);
    }

    // CO-10, oldest first.
    fn close_idle(&mut self) {
        let mut available = self.available();
        available.extend(self.pending_response());
        for id in available {
            if self.idles_out_at(self.connection(id)).is_some_and(|at| at <= self.now) {
                self.close_available(id, CloseReason::Idle, None);
            }
        }
    }

    /// In order of the end of their lifetimes. A connection in use is closed when it is checked in.
    fn close_at_end_of_life(&mut self) {
        let mut due: Vec<(Instant, ConnId)> = self
            .connections
            .iter()
            .filter(|connection| !connection.expiry_seen)
            .filter_map(|connection| Some((connection.expires?, connection.id)))
            .filter(|(expires, _)| *expires <= self.now)
            .collect();
        due.sort();
        for (_, id) in due {
            self.connection_mut(id).expiry_seen = true;
            if self.available().contains(&id) || self.pending_response().contains(&id) {
                self.close_available(id, CloseReason::Idle, None);
            } else if self.draining_for_none().contains(&id) {
                self.abort_drain(id, CloseReason::Idle, None);
            }
        }
    }

    /// Once per check-out, the one checked out first is the first.
    fn report_leak(&mut self) {
        let Some(leak_detection_threshold) = self.leak_detection_threshold() else { return };
        for connection in &mut self.connections {
            let Phase::InUse { since, reported: reported @ false, .. } = &mut connection.phase
            else {
                continue;
            };
            if *since + leak_detection_threshold <= self.now {
                *reported = true;
                let held = self.now.saturating_since(*since);
                self.actions.push(Action::ReportLeak { id: connection.id, held });
            }
        }
    }

    /// Once for each connection, the one created first is the first.
    fn report_unanswered(&mut self) {
        let Some(unanswered_threshold) = self.unanswered_threshold() else { return };
        for Connection { id, created, phase, .. } in &mut self.connections {
            let Phase::Pending { reported: reported @ false, .. } = phase else { continue };
            if *created + unanswered_threshold <= self.now {
                *reported = true;
                let pending = self.now.saturating_since(*created);
                self.actions.push(Action::ReportUnanswered { id: *id, pending });
            }
        }
    }

    // PO-03, PO-05, T-18; T-37: not during the pause after a failure.
    pub(super) fn populate(&mut self) {
        while self.wants_population() && self.populate_after.is_none_or(|end| end <= self.now) {
            self.populate_after = None;
            let id = self.create(None);
            let (owner, deadline, generation) = (None, None, self.generation);
            self.actions.push(Action::StartEstablish { id, owner, deadline, generation });
        }
    }

    fn wants_population(&self) -> bool {
        self.may_create() && self.has_place_to_populate()
    }

    pub(super) fn has_place_to_populate(&self) -> bool {
        self.runs()
            && self.connections.len() < self.min_total()
            && self.populating() < usize::max(1, self.max_pending() - 1)
    }

    // restoring the minimum leaves one permit to requests. Stale pending connections, and those
    // that retire, do not count.
    fn populating(&self) -> usize {
        let ownerless = self.which(|phase| matches!(phase, Phase::Pending { owner: None, .. }));
        let useful = |id: &ConnId| !self.is_stale(*id);
        ownerless.into_iter().filter(useful).count()
    }

    // T-37: the minimum pool size is not restored for a while, if there is one.
    pub(super) fn pause_population(&mut self) {
        let pause = self.pause_after_failure().filter(|_| self.min_total() > 0);
        self.populate_after = pause.map(|pause| self.now + pause);
    }

    /// Everything but timeouts and lifetimes applies at once: stale connections that a pool without
    /// maintenance has kept are closed, then surplus ones, oldest first.
    pub(super) fn set_options(&mut self, options: PoolOptions) {
        let policies = self.policies();
        self.options = options;
        self.restart_policies(policies);
        self.prune_stale();
        if !self.keeps_late_replies() {
            self.close_late();
        }
        for id in self.pending_response() {
            if self.has_surplus() {
                let reason = self.perished(id).unwrap_or(CloseReason::Idle);
                self.close_available(id, reason, None);
            }
        }
        for id in self.draining_for_none() {
            if self.has_surplus() {
                let reason = self.perished(id).unwrap_or(CloseReason::Idle);
                self.abort_drain(id, reason, None);
            }
        }
        for id in self.available() {
            if self.has_surplus() {
                let reason = self.perished(id).unwrap_or(CloseReason::Idle);
                self.close_available(id, reason, None);
            }
        }
    }

    /// The next deadline; of several at the same time, the first in the order of reasons.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let mut earliest: Option<Deadline> = None;
        let mut add = |at, reason| {
            let deadline = Deadline { at, reason };
            earliest = Some(earliest.map_or(deadline, |other| other.min(deadline)));
        };
        for deadline in self.queue.iter().filter_map(|request| request.deadline) {
            add(deadline, DeadlineReason::WaitQueueTimeout);
        }
        for connection in &self.connections {
            if let Some(at) = self.idles_out_at(connection) {
                add(at, DeadlineReason::IdleTime);
            }
            if let Some(at) = connection.expires.filter(|_| self.runs() && !connection.expiry_seen)
            {
                add(at, DeadlineReason::Lifetime);
            }
            if let Some(at) = self.leak_detection_at(connection) {
                add(at, DeadlineReason::LeakDetection);
            }
            if let Some(at) = self.unanswered_at(connection) {
                add(at, DeadlineReason::Unanswered);
            }
            if let Phase::Pending { owner: Some(request), .. } = &connection.phase
                && let Some(at) = request.deadline.filter(|_| request.callers)
            {
                add(at, DeadlineReason::WaitQueueTimeout);
            }
            let drain_ends = self.drain_ends_at(connection);
            let owner = owner_of(&connection.phase).filter(|_| drain_ends.is_some());
            let gives_up = owner.and_then(|request| request.deadline);
            for at in drain_ends.into_iter().chain(gives_up) {
                add(at, DeadlineReason::PendingResponse);
            }
        }
        if let Some(at) = self.sheds_at() {
            add(at, DeadlineReason::StandingDelay);
        }
        if let Some(at) = self.establishes_at() {
            add(at, DeadlineReason::Establishment);
        }
        if let Some(at) = self.populate_after.filter(|_| self.wants_population()) {
            add(at, DeadlineReason::Populate);
        }
        earliest
    }

    /// Strictly after the allowed time.
    fn idles_out_at(&self, connection: &Connection<S::Conn, S::Waiter>) -> Option<Instant> {
        let max_idle = self.max_idle().filter(|_| self.runs())?;
        let (Phase::Available { since, .. } | Phase::PendingResponse { since, .. }) =
            &connection.phase
        else {
            return None;
        };
        Some(*since + max_idle + Duration::from_nanos(1))
    }

    fn unanswered_at(&self, connection: &Connection<S::Conn, S::Waiter>) -> Option<Instant> {
        let Phase::Pending { reported: false, .. } = connection.phase else { return None };
        Some(connection.created + self.unanswered_threshold()?)
    }

    fn leak_detection_at(&self, connection: &Connection<S::Conn, S::Waiter>) -> Option<Instant> {
        let leak_detection_threshold = self.leak_detection_threshold()?;
        let Phase::InUse { since, reported: false, .. } = &connection.phase else {
            return None;
        };
        Some(*since + leak_detection_threshold)
    }
}

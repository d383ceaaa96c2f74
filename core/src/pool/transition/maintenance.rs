//! What a pool does for itself, and when: exact deadlines instead of a background thread's polling.

use crate::pool::action::Action;
use crate::pool::deadline::{Deadline, DeadlineReason};
use crate::pool::event::CloseReason;
use crate::pool::id::ConnId;
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::connections::ConnState;
use crate::pool::state::lists::List;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// When to feed `Timer`, and why; `None` while nothing will be due without another input. May
    /// change with every input.
    // BG-01
    pub fn next_deadline(&self) -> Option<Deadline> {
        // Written out, so that each reason is a constant: this runs after every input.
        let [first, second, third, fourth, fifth, sixth, seventh, eighth, ninth] =
            DeadlineReason::ALL;
        let next = self.earlier(None, first);
        let next = self.earlier(next, second);
        let next = self.earlier(next, third);
        let next = self.earlier(next, fourth);
        let next = if self.settings.reports {
            self.earlier(self.earlier(next, fifth), sixth)
        } else {
            next
        };
        let next = self.earlier(next, seventh);
        let next = if self.settings.codel.is_some() { self.earlier(next, eighth) } else { next };
        if self.settings.paces { self.earlier(next, ninth) } else { next }
    }

    /// Of two at the same time, the one that a run does first.
    #[inline(always)]
    fn earlier(&self, next: Option<Deadline>, reason: DeadlineReason) -> Option<Deadline> {
        match (next, self.due_at(reason)) {
            (Some(next), Some(at)) if at < next.at => Some(Deadline { at, reason }),
            (None, Some(at)) => Some(Deadline { at, reason }),
            (next, Some(_) | None) => next,
        }
    }

    /// One run: does what is due by now and ends. Expired requests fail, idle connections and those
    /// at the end of their lives are closed, long uses and establishments are reported, delayed requests are shed.
    /// The minimum is seen to after every input, so pruning comes before populating.
    // BG-03, BG-06, BG-07, BG-11, ND-06
    pub(super) fn run_maintenance(&mut self, out: &mut impl ActionSink<S>) {
        for reason in DeadlineReason::ALL {
            if self.due_at(reason).is_some_and(|at| at <= self.now) {
                self.do_due(reason, out);
            }
        }
    }

    /// When the next thing of this kind is due.
    #[inline(always)]
    fn due_at(&self, reason: DeadlineReason) -> Option<Instant> {
        match reason {
            DeadlineReason::WaitQueueTimeout => match (self.queue.next_deadline(), self.owners_due)
            {
                (Some(queued), Some(owner)) => Some(queued.min(owner)),
                (queued, owner) => queued.or(owner),
            },
            DeadlineReason::IdleTime => self.next_idle_out(),
            DeadlineReason::Lifetime => {
                self.connections.next_expiry().filter(|_| self.runs_maintenance())
            }
            DeadlineReason::Populate => self.populate_after.filter(|_| self.wants_population()),
            DeadlineReason::LeakDetection => self.next_leak(),
            DeadlineReason::Unanswered => self.next_unanswered().map(|(at, _)| at),
            DeadlineReason::PendingResponse => self.pending_responses.next_due(),
            DeadlineReason::StandingDelay => self.next_shedding(),
            DeadlineReason::Establishment => self.next_establishment(),
        }
    }

    /// Does everything of this kind that is due by now.
    fn do_due(&mut self, reason: DeadlineReason, out: &mut impl ActionSink<S>) {
        match reason {
            DeadlineReason::WaitQueueTimeout => {
                let now = self.now;
                self.time_out_requests_now(out);
                self.time_out_owners(|deadline| deadline <= now, out);
            }
            DeadlineReason::IdleTime => self.close_idle(out),
            DeadlineReason::Lifetime => self.close_at_end_of_life(out),
            // After every input, so after this one, too.
            DeadlineReason::Populate | DeadlineReason::Establishment => {}
            DeadlineReason::LeakDetection => self.report_leaks(out),
            DeadlineReason::Unanswered => self.report_unanswered(out),
            DeadlineReason::PendingResponse => self.give_up_drains(out),
            DeadlineReason::StandingDelay => self.shed(out),
        }
    }

    /// The one that has been available for longest goes first, strictly after its time.
    // CO-10
    fn next_idle_out(&self) -> Option<Instant> {
        let max_idle = self.settings.max_idle.filter(|_| self.runs_maintenance())?;
        let idles_out = |since: Instant| since.after(max_idle).after(1);
        let clean = self.connections.oldest_since(List::Available).map(idles_out);
        match self.connections.oldest_since(List::PendingResponse).map(idles_out) {
            None => clean,
            Some(pending) => Some(clean.map_or(pending, |clean| clean.min(pending))),
        }
    }

    fn close_idle(&mut self, out: &mut impl ActionSink<S>) {
        let Some(max_idle) = self.settings.max_idle else { return };
        for list in [List::Available, List::PendingResponse] {
            while self
                .connections
                .oldest_since(list)
                .is_some_and(|it| it.after(max_idle) < self.now)
            {
                let Some(id) = self.connections.first(list) else { return };
                self.close_available(id, CloseReason::Idle, None, out);
            }
        }
    }

    fn close_at_end_of_life(&mut self, out: &mut impl ActionSink<S>) {
        let now = self.now;
        while let Some(id) = self.connections.pop_expired(|at| at <= now) {
            match self.connections.known(id).state {
                ConnState::Available { .. } => {
                    self.close_available(id, CloseReason::Idle, None, out);
                }
                ConnState::Draining { owner: None } => {
                    self.abort_drain(id, CloseReason::Idle, None, out);
                }
                // These are closed when they are checked in.
                ConnState::InUse { .. }
                | ConnState::Draining { owner: Some(_) }
                | ConnState::Pending { .. } => {}
            }
        }
    }

    fn next_leak(&self) -> Option<Instant> {
        let leak_detection_threshold = self.settings.leak_detection_threshold?;
        Some(self.connections.oldest_since(List::InUse)?.after(leak_detection_threshold))
    }

    fn report_leaks(&mut self, out: &mut impl ActionSink<S>) {
        while self.next_leak().is_some_and(|at| at <= self.now) {
            let Some(id) = self.connections.first(List::InUse) else { return };
            let held = self.now.saturating_since(self.connections.known(id).since());
            self.connections.set_overdue(id);
            out.act(Action::ReportLeak { id, held });
        }
    }

    /// The oldest pending connection that was not reported, and when it will be. Those that were are
    /// the oldest, and no more than `maxConnecting`.
    fn next_unanswered(&self) -> Option<(Instant, ConnId)> {
        let unanswered_threshold = self.settings.unanswered_threshold?;
        let mut pending = self.connections.iter(List::Pending);
        let (id, connection) = pending.find(|(id, _)| id.number() > self.reported)?;
        Some((connection.created.after(unanswered_threshold), id))
    }

    fn report_unanswered(&mut self, out: &mut impl ActionSink<S>) {
        while let Some((_, id)) = self.next_unanswered().filter(|&(at, _)| at <= self.now) {
            let pending = self.now.saturating_since(self.connections.known(id).created);
            self.reported = id.number();
            out.act(Action::ReportUnanswered { id, pending });
        }
    }

    fn runs_maintenance(&self) -> bool {
        self.settings.pause_after_failure.is_some()
    }
}

//! What the inputs and the actions of a step do to connections.

use cenote_core::pool::{Action, CloseReason, Event, Health, Input, WaiterId};
use cenote_core::trace::{Cause, Traced};

use super::collect::{Collector, Open};
use super::model::{MarkKind, UseKind};
use crate::holders::Activity;
use crate::step_reader::View;
use crate::text::{self, span};

impl Collector {
    /// Why connections are closed in this step.
    pub(super) fn reasons(&mut self, view: &View<'_>) {
        if let Input::Clear { cause, .. } = &view.step.input {
            self.stale = format!("the pool was cleared ({cause})");
        } else if matches!(view.step.input, Input::RetireConnections) {
            "all older connections were retired".clone_into(&mut self.stale);
        }
        for action in view.actions {
            let Action::EmitEvent(Event::ConnectionClosed { connection_id, reason, error }) =
                action
            else {
                continue;
            };
            let why = self.reason(view, *connection_id, *reason, error.as_ref());
            let why = self.texts.index(&why, reason.as_str());
            if let Some(open) = self.open.get_mut(connection_id) {
                open.why = why;
            }
        }
    }

    fn reason(
        &self,
        view: &View<'_>,
        number: u64,
        reason: CloseReason,
        error: Option<&Cause>,
    ) -> String {
        match (reason, error) {
            (CloseReason::Error, Some(error)) => format!("error: {error}"),
            (CloseReason::Stale, _) => format!("stale: {}", self.stale),
            (CloseReason::PoolClosed, _) => "the pool was closed".to_owned(),
            (CloseReason::Idle, _) => {
                let limit = view.pool.options().max_idle_time.filter(|limit| !limit.is_zero());
                let idle = view.holders.connections.get(&number);
                let idle = idle.filter(|connection| connection.activity == Activity::Idle);
                let idle = idle.map(|idle| view.pool.now().saturating_since(idle.since));
                match limit.zip(idle).filter(|(limit, idle)| idle >= limit) {
                    Some((limit, _)) => format!("idle for maxIdleTimeMS, {}", span(limit)),
                    None => "idle: older than the maximum lifetime, or surplus".to_owned(),
                }
            }
            (reason, _) => reason.as_str().to_owned(),
        }
    }

    pub(super) fn input(&mut self, view: &View<'_>, now: u64) {
        let input = &view.step.input;
        let told = || text::input(input);
        match input {
            Input::CheckedIn { id, health, .. } => {
                if let Health::Errored(_) = health {
                    self.note(id.number(), &told(), "CheckedIn errored");
                    self.mark(view, MarkKind::Lost, id.number(), &told());
                } else if let Health::PendingResponse { .. } = health {
                    self.note(id.number(), &told(), "CheckedIn pending a response");
                }
                self.rest(id.number(), now);
            }
            Input::DrainSucceeded { id, .. } | Input::EstablishSucceeded { id, .. } => {
                self.rest(id.number(), now);
            }
            Input::EstablishFailed { id, .. } => {
                self.close(id.number(), now);
                self.mark(view, MarkKind::EstablishFailed, id.number(), &told());
                self.back_off(view, id.number());
            }
            Input::DrainFailed { id, .. } => {
                self.close(id.number(), now);
                self.mark(view, MarkKind::Lost, id.number(), &told());
            }
            Input::IdleClosedByPeer { id, .. } => {
                self.mark(view, MarkKind::Lost, id.number(), &told());
            }
            Input::Ready => self.ready(view),
            Input::Close => self.mark(view, MarkKind::Close, 0, &told()),
            Input::RetireConnections => self.mark(view, MarkKind::Retired, 0, &told()),
            Input::ReleaseIdle | Input::SetOptions { .. } => {
                self.mark(view, MarkKind::Other, 0, &told());
            }
            // A clear is marked if it had an effect.
            Input::Clear { .. }
            | Input::CheckOutRequested { .. }
            | Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::DrainProgress { .. }
            | Input::ResetAfterFork
            | Input::Timer => {}
        }
    }

    pub(super) fn action(&mut self, view: &View<'_>, action: &Action<Traced>, now: u64) {
        match action {
            Action::StartEstablish { id, .. } => {
                let activity = Some((UseKind::Pending, 0, now));
                let open =
                    Open { slot: id.slot(), start: now, why: 0, note: 0, place: 0, activity };
                self.open.insert(id.number(), open);
            }
            Action::Deliver { waiter, outcome: Ok((id, ())) } => {
                self.rest(id.number(), now);
                let place = self.place(place_of(*waiter, view));
                if let Some(open) = self.open.get_mut(&id.number()) {
                    open.activity = Some((UseKind::InUse, waiter.0, now));
                    open.place = place;
                }
            }
            Action::CloseSocket { id, .. }
            | Action::AbortEstablish { id }
            | Action::AbortDrain { id } => self.close(id.number(), now),
            Action::StartDrain { id, .. } => {
                if let Some(open) = self.open.get_mut(&id.number()) {
                    open.activity = Some((UseKind::Draining, 0, now));
                }
            }
            Action::Interrupt { id } => {
                self.note(id.number(), &format!("interrupted: {}", self.stale), "interrupted");
            }
            Action::ReportLeak { held, id } => {
                let told = format!("reported: held for {}", span(*held));
                self.note(id.number(), &told, "reported");
                self.mark(view, MarkKind::Leak, id.number(), &told);
            }
            Action::Deliver { outcome: Err(_), .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }
}

/// Where the request that is served in this step was called, if the trace says so.
fn place_of<'a>(waiter: WaiterId, view: &View<'a>) -> Option<&'a str> {
    let is_its = matches!(&view.step.input, Input::CheckOutRequested { id, .. } if *id == waiter);
    let place = if is_its { view.step.place.as_ref() } else { view.holders.places.get(&waiter) };
    place.map(|place| &**place)
}

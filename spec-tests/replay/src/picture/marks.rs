//! Waits, and marks of what happened.

use cenote_core::pool::{Action, Event};
use cenote_core::trace::Traced;

use super::collect::Collector;
use super::model::{Mark, MarkKind, Wait};
use crate::explain::{self, Failure, Outcome};
use crate::step_reader::View;
use crate::text::{counted, span};

impl Collector {
    /// The requests that ended in this step. Those that were served at once are not drawn, because nothing
    /// would be visible.
    pub(super) fn waits(&mut self, view: &View<'_>) {
        for wait in self.analysis.ended().to_vec() {
            if let Outcome::Failed(failure) = &wait.outcome {
                let (word, way) = (failure.word(), wait.in_the_way());
                let told = format!("check-out failed: {word} ({way})");
                let brief = format!("check-out failed: {word}");
                let is_shed = matches!(failure, Failure::Shed);
                let kind = if is_shed { MarkKind::Shed } else { MarkKind::CheckOutFailed };
                self.mark_brief(view, kind, wait.waiter.0, (&told, &brief));
            }
            self.wait(&wait);
        }
    }

    pub(super) fn wait(&mut self, wait: &explain::Wait) {
        let way = wait.in_the_way();
        let brief = way.split(':').next().unwrap_or_default();
        let (outcome, connection) = match &wait.outcome {
            Outcome::Served(number) => (0, *number),
            Outcome::Failed(failure) => (outcome_of(failure), 0),
            Outcome::Waiting => (STILL_WAITING, 0),
        };
        let place = self.place(wait.place.as_deref());
        self.picture.waits.push(Wait {
            row: 0,
            id: wait.waiter.0,
            connection,
            outcome,
            start: wait.asked.as_nanos(),
            end: wait.ended.as_nanos(),
            limit: wait.limit.map_or(0, |limit| u64::try_from(limit.as_nanos()).unwrap_or(0)),
            ahead: wait.ahead.map(|ahead| u32::try_from(ahead).unwrap_or(u32::MAX)),
            why: self.texts.index(&way, brief),
            place,
            count: 1,
            busy: wait.ended.saturating_since(wait.asked).as_nanos() as u64,
        });
    }

    /// Many clients mark a pool ready after each check of the server: what changes nothing is only counted.
    pub(super) fn ready(&mut self, view: &View<'_>) {
        let is_change = |action: &Action<Traced>| {
            matches!(action, Action::EmitEvent(Event::ConnectionPoolReady))
        };
        match self.ready.last_mut() {
            Some((_, again)) if !view.actions.iter().any(is_change) => *again += 1,
            Some(_) | None => {
                self.ready.push((self.picture.marks.len(), 0));
                self.mark(view, MarkKind::Ready, 0, "Ready");
            }
        }
    }

    /// Marks that a back-off begins; failures during one belong to it.
    pub(super) fn back_off(&mut self, view: &View<'_>, number: u64) {
        let pacing = view.pool.checkpoint().pacing;
        let until = pacing.not_before.filter(|_| pacing.overloads > 0);
        let Some(until) = until.filter(|_| self.backs_off_until != until) else { return };
        self.backs_off_until = Some(until);
        let (times, lasts) = (pacing.overloads, until.saturating_since(view.pool.now()));
        let overloads = counted(times.into(), "overload", "overloads in a row");
        let told = format!("the pool backs off for {}: {overloads}", span(lasts));
        self.mark(view, MarkKind::BackOff, number, &told);
    }

    pub(super) fn mark(&mut self, view: &View<'_>, kind: MarkKind, about: u64, text: &str) {
        let brief = view.step.input.name();
        self.mark_brief(view, kind, about, (text, brief));
    }

    pub(super) fn mark_brief(
        &mut self,
        view: &View<'_>,
        kind: MarkKind,
        about: u64,
        (text, brief): (&str, &str),
    ) {
        let text = self.texts.index(text, brief);
        let (at, step) = (view.pool.now().as_nanos(), view.step.number);
        self.picture.marks.push(Mark { at, kind, step, text, about });
    }
}

const fn outcome_of(failure: &Failure) -> u8 {
    match failure {
        Failure::TimedOut => 1,
        Failure::Paused(_) | Failure::Cleared(_) => 2,
        // The events of a pool do not always say why.
        Failure::NotEstablished(_) | Failure::Untold => 3,
        Failure::Closed => 4,
        Failure::Cancelled => 5,
        Failure::QueueFull => 7,
        Failure::Shed => 8,
    }
}

const STILL_WAITING: u8 = 6;

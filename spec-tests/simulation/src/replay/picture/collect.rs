//! Collects what a picture shows while a trace is replayed.

use std::collections::BTreeMap;

use cenote_core::pool::{
    Action, CheckOutError, ConnectionState, Input, Instant, PoolState, Snapshot, WaiterId,
};
use cenote_core::trace::{Cause, Traced};

use super::rows;
use crate::replay::step_reader::View;
use crate::replay::text;

/// Everything that is drawn. Times are nanoseconds since the origin.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The beginning of the trace.
    pub start: u64,
    /// The end of the trace.
    pub end: u64,
    /// The number of steps.
    pub steps: u64,
    /// The lifetime of each connection, in the order of their ends.
    pub lives: Vec<Life>,
    /// Establishments and uses of connections, in the order of their ends.
    pub uses: Vec<Use>,
    /// Requests that waited or failed, in the order of their ends.
    pub waits: Vec<Wait>,
    /// The counts, whenever they change.
    pub points: Vec<Point>,
    /// The limits, whenever they change.
    pub limits: Vec<Limits>,
    /// The marks.
    pub marks: Vec<Mark>,
    /// The texts of marks, by index.
    pub texts: Vec<String>,
}

/// The lifetime of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Its lane.
    pub slot: u32,
    /// Its number.
    pub number: u64,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
}

/// An establishment or a use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Its lane.
    pub slot: u32,
    /// Its number.
    pub number: u64,
    /// The kind.
    pub kind: UseKind,
    /// The request that holds it; 0 if unknown.
    pub holder: u64,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
}

/// The activity of a connection that is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// It is being established.
    Pending,
    /// It is checked out.
    InUse,
    /// A late reply is read.
    Draining,
}

/// A request from its arrival to its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its row: waits in a row do not overlap.
    pub row: u32,
    /// The request.
    pub id: u64,
    /// The connection that was delivered; 0 if it failed.
    pub connection: u64,
    /// The outcome: 0 served, 1 timed out, 2 cleared or paused, 3 not established, 4 closed, 5
    /// cancelled, 6 still waiting at the end.
    pub outcome: u8,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
}

/// The counts from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The start.
    pub at: u64,
    /// Pending, available and in use together.
    pub total: u32,
    /// Checked out.
    pub in_use: u32,
    /// Being established.
    pub pending: u32,
    /// In the wait queue.
    pub waiting: u32,
}

/// The limits from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The start.
    pub at: u64,
    /// `maxPoolSize`; 0 is without limit.
    pub max: u32,
    /// `minPoolSize`.
    pub min: u32,
    /// `maxConnecting`.
    pub connecting: u32,
}

/// A marked event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The time.
    pub at: u64,
    /// The kind.
    pub kind: MarkKind,
    /// The step.
    pub step: u64,
    /// The index of its text.
    pub text: u32,
}

/// The marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// The pool became ready.
    Ready,
    /// The pool, or a service, was cleared.
    Clear,
    /// The pool was closed.
    Close,
    /// A check-out failed.
    CheckOutFailed,
    /// An establishment failed.
    EstablishFailed,
    /// Other options, a fork, a gap in the recording, or a refused input.
    Other,
}

/// Gathers a [`Picture`].
#[derive(Debug)]
pub struct Collector {
    picture: Picture,
    open: BTreeMap<u64, Open>,
    asked: BTreeMap<u64, u64>,
    texts: BTreeMap<String, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    slot: u32,
    start: u64,
    activity: Option<(UseKind, u64, u64)>,
}

impl Collector {
    /// Starts with a pool in its initial state.
    pub fn new(pool: &PoolState<Traced>) -> Self {
        let start = pool.now().as_nanos();
        let mut collector = Self {
            picture: Picture { start, end: start, ..Picture::default() },
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            texts: BTreeMap::new(),
        };
        collector.take_over(pool);
        collector
    }

    /// Adds a step.
    pub fn add(&mut self, view: &View<'_>) {
        let now = view.pool.now().as_nanos();
        (self.picture.end, self.picture.steps) = (now, view.step.number);
        if let Some(lost) = view.step.lost_before {
            self.abandon();
            self.take_over(view.pool);
            self.mark(view, MarkKind::Other, format!("{lost} inputs were not recorded"));
            return;
        }
        if view.step.refused {
            let told = format!("refused: {}", text::input(&view.step.input));
            return self.mark(view, MarkKind::Other, told);
        }
        self.input(view, now);
        for action in view.actions {
            self.action(view, action, now);
        }
        if matches!(view.step.input, Input::ResetAfterFork) {
            self.abandon();
            self.take_over(view.pool);
        }
        self.counts(&view.pool.snapshot(), now);
    }

    /// Ends everything that is still open.
    pub fn finish(mut self) -> Picture {
        self.abandon();
        rows::assign(&mut self.picture.waits);
        self.picture.texts = vec![String::new(); self.texts.len()];
        for (text, place) in self.texts {
            self.picture.texts[place as usize] = text;
        }
        self.picture
    }

    fn input(&mut self, view: &View<'_>, now: u64) {
        let input = &view.step.input;
        match input {
            Input::CheckOutRequested { id, .. } => {
                self.asked.insert(id.0, now);
            }
            Input::CheckedIn { id, .. }
            | Input::DrainSucceeded { id, .. }
            | Input::EstablishSucceeded { id, .. } => {
                self.rest(id.number(), now);
            }
            Input::EstablishFailed { id, .. } => {
                self.close(id.number(), now);
                self.mark(view, MarkKind::EstablishFailed, text::input(input));
            }
            Input::DrainFailed { id, .. } => {
                self.close(id.number(), now);
                self.mark(view, MarkKind::Other, text::input(input));
            }
            Input::Clear { .. } => self.mark(view, MarkKind::Clear, text::input(input)),
            Input::Ready => self.mark(view, MarkKind::Ready, text::input(input)),
            Input::Close => self.mark(view, MarkKind::Close, text::input(input)),
            Input::ResetAfterFork | Input::RetireConnections | Input::SetOptions { .. } => {
                self.mark(view, MarkKind::Other, text::input(input));
            }
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::IdleClosedByPeer { .. }
            | Input::DrainProgress { .. }
            | Input::Timer => {}
        }
    }

    fn action(&mut self, view: &View<'_>, action: &Action<Traced>, now: u64) {
        match action {
            Action::StartEstablish { id, .. } => {
                let activity = Some((UseKind::Pending, 0, now));
                let open = Open { slot: id.slot(), start: now, activity };
                self.open.insert(id.number(), open);
            }
            Action::Deliver { waiter, outcome: Ok((id, ())) } => {
                self.rest(id.number(), now);
                if let Some(open) = self.open.get_mut(&id.number()) {
                    open.activity = Some((UseKind::InUse, waiter.0, now));
                }
                self.answered(*waiter, id.number(), 0, now);
            }
            Action::Deliver { waiter, outcome: Err(error) } => {
                self.answered(*waiter, 0, outcome_of(error), now);
                let failure = text::failure(error);
                self.mark(view, MarkKind::CheckOutFailed, format!("check-out failed: {failure}"));
            }
            Action::CloseSocket { id, .. }
            | Action::AbortEstablish { id }
            | Action::AbortDrain { id } => self.close(id.number(), now),
            Action::StartDrain { id, .. } => {
                if let Some(open) = self.open.get_mut(&id.number()) {
                    open.activity = Some((UseKind::Draining, 0, now));
                }
            }
            Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }

    /// Ends the activity of a connection.
    fn rest(&mut self, number: u64, now: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let slot = open.slot;
        if let Some((kind, holder, start)) = open.activity.take() {
            self.picture.uses.push(Use { slot, number, kind, holder, start, end: now });
        }
    }

    fn close(&mut self, number: u64, now: u64) {
        self.rest(number, now);
        if let Some(Open { slot, start, .. }) = self.open.remove(&number) {
            self.picture.lives.push(Life { slot, number, start, end: now });
        }
    }

    /// Requests that are served at once are not drawn, because nothing would be visible.
    fn answered(&mut self, waiter: WaiterId, connection: u64, outcome: u8, now: u64) {
        let Some(start) = self.asked.remove(&waiter.0) else { return };
        if start != now || outcome != 0 {
            let wait = Wait { row: 0, id: waiter.0, connection, outcome, start, end: now };
            self.picture.waits.push(wait);
        }
    }

    /// Everything that is open ends here.
    fn abandon(&mut self) {
        let now = self.picture.end;
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|number| self.close(number, now));
        let asked: Vec<u64> = self.asked.keys().copied().collect();
        asked.into_iter().for_each(|id| self.answered(WaiterId(id), 0, STILL_WAITING, now));
    }

    /// Adds the state of a pool.
    fn take_over(&mut self, pool: &PoolState<Traced>) {
        for connection in pool.connections() {
            let since = connection.since.as_nanos();
            let activity = match connection.state {
                ConnectionState::Pending { .. } => Some((UseKind::Pending, 0, since)),
                ConnectionState::Available | ConnectionState::PendingResponse { .. } => None,
                ConnectionState::Draining { .. } => Some((UseKind::Draining, 0, since)),
                ConnectionState::InUse { .. } => Some((UseKind::InUse, 0, since)),
            };
            let (slot, start) = (connection.id.slot(), connection.created.as_nanos());
            self.open.insert(connection.id.number(), Open { slot, start, activity });
        }
        let waiters: Vec<_> = pool.waiters().map(|waiter| (waiter.id.0, waiter.started)).collect();
        for (id, started) in waiters {
            self.asked.insert(id, Instant::as_nanos(started));
        }
        self.counts(&pool.snapshot(), pool.now().as_nanos());
    }

    fn counts(&mut self, snapshot: &Snapshot, at: u64) {
        let waiting = u32::try_from(snapshot.waiting).unwrap_or(u32::MAX);
        let &Snapshot { total, in_use, pending, .. } = snapshot;
        let point = Point { at, total, in_use, pending, waiting };
        let differs = |last: &Point| Point { at, ..*last } != point;
        if self.picture.points.last().is_none_or(differs) {
            // Of several at the same time, only the last is visible.
            if self.picture.points.last().is_some_and(|last| last.at == at) {
                self.picture.points.pop();
            }
            self.picture.points.push(point);
        }
        let (min, connecting) = (snapshot.min_pool_size, snapshot.max_connecting);
        let limits = Limits { at, max: snapshot.max_pool_size.unwrap_or(0), min, connecting };
        let last = self.picture.limits.last();
        if last.is_none_or(|last| Limits { at, ..*last } != limits) {
            self.picture.limits.push(limits);
        }
    }

    fn mark(&mut self, view: &View<'_>, kind: MarkKind, text: String) {
        let text = if self.texts.len() < TEXTS_MAX { text } else { "…".to_owned() };
        let next = self.texts.len() as u32;
        let text = *self.texts.entry(text).or_insert(next);
        let (at, step) = (view.pool.now().as_nanos(), view.step.number);
        self.picture.marks.push(Mark { at, kind, step, text });
    }
}

fn outcome_of(error: &CheckOutError<Cause>) -> u8 {
    match error {
        CheckOutError::WaitQueueTimeout { .. } => 1,
        CheckOutError::PoolCleared { .. } => 2,
        CheckOutError::EstablishFailed { .. } => 3,
        CheckOutError::PoolClosed => 4,
        CheckOutError::Cancelled => 5,
    }
}

const STILL_WAITING: u8 = 6;
/// The maximum number of different texts.
const TEXTS_MAX: usize = 2_000;

//! Collects what a trace says about waits, uses, establishments and clears.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{Action, Health, Input, Instant, WaiterId};
use cenote_core::trace::Traced;

use super::clears::Clears;
use super::stages::Stages;
use super::statistics::{Longest, Sample};
use super::wait::{Counts, Failure, Obstacle, Outcome, Wait};
use crate::holders::{Activity, Connection, Holders, Request};
use crate::step_reader::View;

/// Follows a replay from the beginning of the trace.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub(super) arrivals: Sample<Instant>,
    /// Ended waits of requests that were served: when they ended, and how long they were.
    pub(super) waits: Sample<(Instant, Duration)>,
    pub(super) uses: Sample<(Instant, Duration)>,
    pub(super) establishments: Sample<(Instant, Duration)>,
    pub(super) stages: Stages,
    pub(super) groups: BTreeMap<Group, Members>,
    /// The waits that ended in the last step.
    ended: Vec<Wait>,
    pub(super) slowest: Longest<Wait>,
    pub(super) long_uses: Longest<Use>,
    pub(super) clears: Clears,
    pub(super) counts: Requests,
    pub(super) waiting_max: u64,
    pub(super) created: Sample<Instant>,
    pub(super) refused: u64,
    pub(super) lost: u64,
    /// The first and the last step that counted.
    pub(super) counted: Option<(Instant, Instant)>,
    /// Whether the last step counted.
    counts_end: bool,
}

/// How many requests there were, and what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    pub(super) at_once: u64,
    pub(super) after_wait: u64,
    pub(super) failed: u64,
}

/// Requests that waited for the same, or failed for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// They failed. The obstacle is that of a wait that ended without any other reason.
    Failed(Failure, Option<Obstacle>),
    /// They were served after waiting for this.
    Waited(Obstacle),
}

/// The members of a group.
#[derive(Clone, Debug)]
pub(super) struct Members {
    pub(super) count: u64,
    /// The ends of the first and of the last wait.
    pub(super) first: Instant,
    pub(super) last: Instant,
    /// The longest wait.
    pub(super) longest: Wait,
    /// The times of asking and ending.
    pub(super) intervals: Sample<(Instant, Instant)>,
}

/// One use of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The connection's number.
    pub connection: u64,
    /// `None`: it was checked out before the trace.
    pub holder: Option<WaiterId>,
    /// Where in the program it was checked out, if that is known.
    pub place: Option<Arc<str>>,
    /// When it was checked out.
    pub since: Instant,
    /// The step of the check-out; 0 if that was before the trace.
    pub step: u64,
    /// When it was checked in, and whether with an error.
    pub(super) until: Option<(Instant, bool)>,
    /// When the pool reported it as a possible leak.
    pub(super) reported: Option<Instant>,
}

impl Use {
    pub(super) fn held(&self, now: Instant) -> Duration {
        self.until.map_or(now, |(until, _)| until).saturating_since(self.since)
    }

    /// The use of a connection, if it is in use.
    pub(super) fn of(number: u64, connection: &Connection, holders: &Holders) -> Option<Self> {
        let Activity::InUse(holder) = connection.activity else { return None };
        let place = holder.and_then(|holder| holders.places.get(&holder).cloned());
        let &Connection { since, step, reported, .. } = connection;
        Some(Self { connection: number, holder, place, since, step, until: None, reported })
    }
}

impl Analysis {
    /// Keeps this many of the longest waits.
    pub fn new(slowest: usize) -> Self {
        Self {
            arrivals: Sample::default(),
            waits: Sample::default(),
            uses: Sample::default(),
            establishments: Sample::default(),
            stages: Stages::default(),
            groups: BTreeMap::new(),
            ended: Vec::new(),
            slowest: Longest::new(slowest),
            long_uses: Longest::new(LONG_USES),
            clears: Clears::default(),
            counts: Requests::default(),
            waiting_max: 0,
            created: Sample::default(),
            refused: 0,
            lost: 0,
            counted: None,
            counts_end: true,
        }
    }

    /// Takes a step. Only what ends in a step that `counts` is counted.
    pub fn add(&mut self, view: &View<'_>, counts: bool) {
        let now = view.pool.now();
        self.ended.clear();
        self.counts_end = counts;
        self.lost += view.step.lost_before.unwrap_or(0);
        self.stages.add(view, counts);
        if counts {
            self.counted = Some((self.counted.map_or(now, |(first, _)| first), now));
            self.refused += u64::from(view.step.refused);
        }
        if view.step.refused || view.step.lost_before.is_some() {
            return;
        }
        if counts {
            self.take_input(view);
            for action in view.actions {
                self.take_action(action, view);
            }
            self.waiting_max = self.waiting_max.max(view.pool.snapshot().waiting);
        }
        self.clears.add(view, counts);
    }

    fn take_input(&mut self, view: &View<'_>) {
        let now = view.pool.now();
        let known = |number: u64| view.holders.connections.get(&number);
        if let Input::CheckOutRequested { .. } = &view.step.input {
            self.arrivals.add(now);
        } else if let Input::CheckedIn { id, health, .. } = &view.step.input {
            let used = known(id.number()).and_then(|it| Use::of(id.number(), it, view.holders));
            let Some(used) = used else { return };
            let until = Some((now, !matches!(health, Health::Healthy)));
            self.add_use(Use { until, ..used }, now);
        } else if let Input::EstablishSucceeded { id, .. } = &view.step.input {
            let Some(pending) = known(id.number()) else { return };
            self.establishments.add((now, now.saturating_since(pending.since)));
        }
    }

    fn take_action(&mut self, action: &Action<Traced>, view: &View<'_>) {
        if let Action::StartEstablish { .. } = action {
            self.created.add(view.pool.now());
        } else if let Action::Deliver { waiter, outcome } = action {
            let is_at_once =
                matches!(&view.step.input, Input::CheckOutRequested { id, .. } if id == waiter);
            let request = if is_at_once {
                Some(Request::of(view.step, view.before.waiting, view.pool))
            } else {
                view.holders.requests.get(waiter).copied()
            };
            let outcome = match outcome {
                Ok((id, ())) => Outcome::Served(id.number()),
                Err(error) => Outcome::Failed(Failure::of(error, is_at_once)),
            };
            if let Some(request) = request {
                self.end_wait(*waiter, request, outcome, is_at_once, view);
            }
        }
    }

    /// A use that ended now.
    pub(super) fn add_use(&mut self, ended: Use, now: Instant) {
        let held = ended.held(now);
        self.uses.add((now, held));
        self.long_uses.add(held, || ended);
    }

    fn end_wait(
        &mut self,
        waiter: WaiterId,
        request: Request,
        outcome: Outcome,
        is_at_once: bool,
        view: &View<'_>,
    ) {
        let now = view.pool.now();
        let counts = Counts::of(&view.before, view.pool.options());
        let wait = |outcome| {
            let own_place = view.step.place.as_ref().filter(|_| is_at_once);
            let place = own_place.or_else(|| view.holders.places.get(&waiter)).cloned();
            wait(waiter, request, place, now, counts, outcome, view.holders)
        };
        let waited = now.saturating_since(request.started);
        self.add_wait(now, waited, (outcome, is_at_once), wait);
    }

    /// A wait of this length that ended now: how, and whether it was none.
    pub(super) fn add_wait(
        &mut self,
        now: Instant,
        waited: Duration,
        (outcome, is_at_once): (Outcome, bool),
        wait: impl FnOnce(Outcome) -> Wait,
    ) {
        match (&outcome, is_at_once) {
            (Outcome::Served(_), true) => self.counts.at_once += 1,
            (Outcome::Served(_), false) => self.counts.after_wait += 1,
            (Outcome::Failed(_), _) => self.counts.failed += 1,
            (Outcome::Waiting, _) => {}
        }
        if matches!(outcome, Outcome::Served(_)) {
            self.waits.add((now, waited));
            if is_at_once {
                return;
            }
        }
        let wait = wait(outcome);
        let group = match &wait.outcome {
            Outcome::Failed(
                failure @ (Failure::TimedOut
                | Failure::QueueFull
                | Failure::Shed
                | Failure::Cancelled
                | Failure::Untold),
            ) => Group::Failed(failure.clone(), Some(wait.obstacle)),
            Outcome::Failed(failure) => Group::Failed(failure.clone(), None),
            Outcome::Served(_) | Outcome::Waiting => Group::Waited(wait.obstacle),
        };
        self.ended.push(wait.clone());
        self.slowest.add(waited, || wait.clone());
        let members = self.groups.entry(group).or_insert_with(|| Members {
            count: 0,
            first: now,
            last: now,
            longest: wait.clone(),
            intervals: Sample::default(),
        });
        members.count += 1;
        members.last = now;
        members.intervals.add((wait.asked, now));
        if waited >= members.longest.duration() {
            members.longest = wait;
        }
    }

    /// The waits that ended in the last step. A request that was served at once did not wait.
    pub fn ended(&self) -> &[Wait] {
        &self.ended
    }

    /// Changes the waits that are kept.
    pub(super) fn each_wait(&mut self, change: impl FnMut(&mut Wait)) {
        let longest = self.groups.values_mut().map(|members| &mut members.longest);
        self.ended.iter_mut().chain(self.slowest.items_mut()).chain(longest).for_each(change);
    }

    /// How many clears there were so far.
    pub fn clear_count(&self) -> usize {
        self.clears.all.len()
    }

    /// The requests that wait at the end, at this time and with these counts, if that counts.
    pub fn still_waiting(&self, holders: &Holders, end: Instant, counts: Counts) -> Vec<Wait> {
        let requests = holders.requests.iter().filter(|_| self.counts_end);
        let waits = requests.map(|(&waiter, &request)| {
            let place = holders.places.get(&waiter).cloned();
            wait(waiter, request, place, end, counts, Outcome::Waiting, holders)
        });
        waits.collect()
    }
}

fn wait(
    waiter: WaiterId,
    request: Request,
    place: Option<Arc<str>>,
    ended: Instant,
    counts: Counts,
    outcome: Outcome,
    holders: &Holders,
) -> Wait {
    let obstacle = if counts.pending > 0 && holders.own(waiter).is_some() {
        Obstacle::OwnConnection
    } else if counts.drains && holders.drained(waiter).is_some() {
        Obstacle::LateReply
    } else {
        counts.obstacle()
    };
    let Request { started: asked, step: asked_step, ahead, limit } = request;
    Wait { waiter, asked, asked_step, place, ended, ahead, limit, obstacle, counts, outcome }
}

/// How many of the longest uses are kept.
const LONG_USES: usize = 1000;

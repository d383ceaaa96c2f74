//! Collects what a trace says about waits, uses, establishments and clears.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{
    Action, ConnectionState, Event, Health, Input, Instant, PoolState, WaiterId,
};
use cenote_core::trace::Traced;

use super::clears::Clears;
use super::statistics::{Longest, Sample};
use super::wait::{Counts, Failure, Obstacle, Outcome, Wait, limit};
use crate::holders::Activity;
use crate::step_reader::View;

/// Follows a replay from the beginning of the trace.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The requests that wait.
    asked: BTreeMap<WaiterId, Asked>,
    /// The connections that are being established, and for which request.
    pending: BTreeMap<u64, Pending>,
    /// The connections in use.
    pub(super) open: BTreeMap<u64, Use>,
    pub(super) arrivals: Sample<Instant>,
    /// Ended waits of requests that were served: when they ended, and how long they were.
    pub(super) waits: Sample<(Instant, Duration)>,
    pub(super) uses: Sample<(Instant, Duration)>,
    pub(super) establishments: Sample<(Instant, Duration)>,
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
    pub(super) last: Instant,
    pub(super) steps: u64,
    /// After the last step.
    pub(super) state: Counts,
    has_begun: bool,
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
}

#[derive(Clone, Debug)]
struct Asked {
    at: Instant,
    step: u64,
    place: Option<Arc<str>>,
    ahead: Option<u64>,
    limit: Option<Duration>,
    own: Option<u64>,
}

impl Asked {
    const fn before_the_trace(at: Instant) -> Self {
        Self { at, step: 0, place: None, ahead: None, limit: None, own: None }
    }
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    since: Instant,
    owner: Option<WaiterId>,
}

impl Analysis {
    /// Keeps this many of the longest waits.
    pub fn new(slowest: usize) -> Self {
        Self {
            asked: BTreeMap::new(),
            pending: BTreeMap::new(),
            open: BTreeMap::new(),
            arrivals: Sample::default(),
            waits: Sample::default(),
            uses: Sample::default(),
            establishments: Sample::default(),
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
            last: Instant::ORIGIN,
            steps: 0,
            state: Counts {
                total: 0,
                in_use: 0,
                pending: 0,
                max: None,
                max_connecting: 0,
                paces: false,
            },
            has_begun: false,
        }
    }

    /// Takes a step. Only what ends in a step that `counts` is counted.
    pub fn add(&mut self, view: &View<'_>, counts: bool) {
        let now = view.pool.now();
        self.ended.clear();
        self.counts_end = counts;
        if counts {
            self.counted = Some((self.counted.map_or(now, |(first, _)| first), now));
        }
        (self.last, self.steps) = (now, self.steps + 1);
        self.state = Counts::of(&view.pool.snapshot(), view.pool.options());
        self.lost += view.step.lost_before.unwrap_or(0);
        if view.step.lost_before.is_some() || !self.has_begun {
            self.resume(view);
        }
        self.has_begun = true;
        if view.step.refused {
            self.refused += u64::from(counts);
            return;
        }
        if view.step.lost_before.is_some() {
            return;
        }
        self.take_input(view, counts);
        for action in view.actions {
            self.take_action(action, view, counts);
        }
        self.clears.add(view, counts);
        if counts {
            self.waiting_max = self.waiting_max.max(view.pool.snapshot().waiting);
        }
    }

    /// Begins with a state: that before the first step, or that after a gap.
    fn resume(&mut self, view: &View<'_>) {
        (self.asked, self.pending, self.open) = Default::default();
        if view.step.lost_before.is_some() {
            self.resume_at(view.pool);
            return;
        }
        for (&number, connection) in &view.holders.connections {
            let since = connection.since;
            match connection.activity {
                Activity::InUse(holder) => self.open_use(number, holder, None, since, 0),
                Activity::Pending => {
                    self.pending.insert(number, Pending { since, owner: connection.creator });
                }
                Activity::Idle | Activity::Draining(_) => {}
            }
        }
        for (&waiter, request) in &view.holders.requests {
            let asked = Asked::before_the_trace(request.started);
            self.asked.insert(waiter, asked);
        }
    }

    fn resume_at(&mut self, pool: &PoolState<Traced>) {
        for connection in pool.connections() {
            let (number, since) = (connection.id.number(), connection.since);
            match connection.state {
                ConnectionState::InUse { .. } => self.open_use(number, None, None, since, 0),
                ConnectionState::Pending { owner, .. } => {
                    self.pending.insert(number, Pending { since, owner });
                }
                ConnectionState::Available
                | ConnectionState::PendingResponse { .. }
                | ConnectionState::Draining { .. } => {}
            }
        }
        for waiter in pool.waiters() {
            let asked = Asked::before_the_trace(waiter.started);
            self.asked.insert(waiter.id, asked);
        }
    }

    fn open_use(
        &mut self,
        connection: u64,
        holder: Option<WaiterId>,
        place: Option<Arc<str>>,
        since: Instant,
        step: u64,
    ) {
        let open = Use { connection, holder, place, since, step, until: None, reported: None };
        self.open.insert(connection, open);
    }

    fn take_input(&mut self, view: &View<'_>, counts: bool) {
        let now = view.pool.now();
        match &view.step.input {
            Input::CheckOutRequested { id, .. } => {
                let ahead = Some(view.before.waiting);
                let (step, limit, place) = (view.step.number, limit(view), view.step.place.clone());
                let asked = Asked { at: now, step, place, ahead, limit, own: None };
                self.asked.insert(*id, asked);
                if counts {
                    self.arrivals.add(now);
                }
            }
            Input::CheckedIn { id, health, .. } => {
                let Some(mut ended) = self.open.remove(&id.number()) else { return };
                ended.until = Some((now, !matches!(health, Health::Healthy)));
                let held = ended.held(now);
                if counts {
                    self.uses.add((now, held));
                    self.long_uses.add(held, || ended);
                }
            }
            Input::EstablishSucceeded { id, .. } => {
                let Some(pending) = self.pending.remove(&id.number()) else { return };
                if counts {
                    self.establishments.add((now, now.saturating_since(pending.since)));
                }
            }
            Input::EstablishFailed { id, .. } => drop(self.pending.remove(&id.number())),
            // In the child process, connections and requests are the parent's.
            Input::ResetAfterFork => (self.asked, self.pending, self.open) = Default::default(),
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::IdleClosedByPeer { .. }
            | Input::DrainSucceeded { .. }
            | Input::DrainFailed { .. }
            | Input::DrainProgress { .. }
            | Input::RetireConnections
            | Input::ReleaseIdle
            | Input::Ready
            | Input::Close
            | Input::Timer
            | Input::Clear { .. }
            | Input::SetOptions { .. } => {}
        }
    }

    fn take_action(&mut self, action: &Action<Traced>, view: &View<'_>, counts: bool) {
        let now = view.pool.now();
        match action {
            Action::StartEstablish { id, owner, .. } => {
                self.pending.insert(id.number(), Pending { since: now, owner: *owner });
                if let Some(asked) = owner.and_then(|owner| self.asked.get_mut(&owner)) {
                    asked.own = Some(id.number());
                }
                if counts {
                    self.created.add(now);
                }
            }
            Action::AbortEstablish { id } => drop(self.pending.remove(&id.number())),
            Action::Deliver { waiter, outcome } => {
                let asked = self.asked.remove(waiter);
                let outcome = match outcome {
                    Ok((id, ())) => {
                        let place = asked.as_ref().and_then(|asked| asked.place.clone());
                        self.open_use(id.number(), Some(*waiter), place, now, view.step.number);
                        Ok(id.number())
                    }
                    Err(error) => Err(error),
                };
                let Some(asked) = asked else { return };
                if !counts {
                    return;
                }
                let is_at_once = asked.step == view.step.number;
                let outcome = match outcome {
                    Ok(number) => Outcome::Served(number),
                    Err(error) => Outcome::Failed(Failure::of(error, is_at_once)),
                };
                self.end_wait(*waiter, asked, outcome, is_at_once, view);
            }
            Action::ReportLeak { id, .. } => {
                if let Some(open) = self.open.get_mut(&id.number()) {
                    open.reported = Some(now);
                }
            }
            Action::EmitEvent(Event::ConnectionClosed { connection_id, .. }) => {
                self.pending.remove(connection_id);
            }
            Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }

    fn end_wait(
        &mut self,
        waiter: WaiterId,
        asked: Asked,
        outcome: Outcome,
        is_at_once: bool,
        view: &View<'_>,
    ) {
        let now = view.pool.now();
        let (came, waited) = (asked.at, now.saturating_since(asked.at));
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
        let wait = self.wait(waiter, asked, outcome, view);
        let group = match &wait.outcome {
            Outcome::Failed(
                failure @ (Failure::TimedOut
                | Failure::QueueFull
                | Failure::Shed
                | Failure::Cancelled),
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
        members.intervals.add((came, now));
        if waited >= members.longest.duration() {
            members.longest = wait;
        }
    }

    fn wait(&self, waiter: WaiterId, asked: Asked, outcome: Outcome, view: &View<'_>) -> Wait {
        let counts = Counts::of(&view.before, view.pool.options());
        let is_own = |number| {
            let is_its = |pending: &Pending| pending.owner == Some(waiter);
            // The establishment that ends in this step is no longer pending.
            self.pending.get(&number).is_some_and(is_its) || outcome == Outcome::Served(number)
        };
        let obstacle = if asked.own.is_some_and(is_own) {
            Obstacle::OwnConnection
        } else if drained(view, waiter) {
            Obstacle::LateReply
        } else {
            counts.obstacle()
        };
        let Asked { at: asked, step: asked_step, place, ahead, limit, .. } = asked;
        let ended = view.pool.now();
        Wait { waiter, asked, asked_step, place, ended, ahead, limit, obstacle, counts, outcome }
    }

    /// The waits that ended in the last step. A request that was served at once did not wait.
    pub fn ended(&self) -> &[Wait] {
        &self.ended
    }

    /// How many clears there were so far.
    pub fn clear_count(&self) -> usize {
        self.clears.all.len()
    }

    /// The requests that wait at the end, if that counts.
    pub fn still_waiting(&self) -> Vec<Wait> {
        if !self.counts_end {
            return Vec::new();
        }
        let wait = |(&waiter, asked): (&WaiterId, &Asked)| Wait {
            waiter,
            asked: asked.at,
            asked_step: asked.step,
            place: asked.place.clone(),
            ended: self.last,
            ahead: asked.ahead,
            limit: asked.limit,
            obstacle: match asked.own {
                Some(_) => Obstacle::OwnConnection,
                None => self.state.obstacle(),
            },
            counts: self.state,
            outcome: Outcome::Waiting,
        };
        self.asked.iter().map(wait).collect()
    }
}

fn drained(view: &View<'_>, waiter: WaiterId) -> bool {
    let may_drain = view.pool.options().experimental_pending_response == Some(true);
    let mut connections = view.holders.connections.values();
    may_drain && connections.any(|it| it.activity == Activity::Draining(Some(waiter)))
}

/// How many of the longest uses are kept.
const LONG_USES: usize = 1000;

//! The pool under test, and the checks after every input.

use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, ConnectionInfo, ConnectionState, Input, Instant, Maintenance, PoolOptions,
    PoolState, Snapshot, Status, WaiterId, WaiterInfo, WaitsFor,
};

use super::accounting::Accounting;
use crate::lockstep::{self, Story, Tagged};
use crate::model::Model;

/// An input and when it was fed.
pub(super) type Fed = (Instant, Input<Tagged>);

#[cfg(test)]
mod tests;

/// The pool under test.
pub(super) struct Subject {
    pool: PoolState<Tagged>,
    model: Option<Model<Tagged>>,
    story: Story,
    /// All inputs, if they are to be kept.
    pub(super) kept: Option<Vec<Fed>>,
    pub(super) fed: u64,
    /// The options were changed: the earlier ones still apply to what happened under them.
    had_others: bool,
    /// The requests that owned a connection before the last input, and which.
    owners: Vec<(WaiterId, ConnId)>,
}

/// The default, and longer than any pause in a plan.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What judges the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judges {
    pub(super) has_model: bool,
    pub(super) keeps_inputs: bool,
}

impl Subject {
    pub(super) fn new(options: &PoolOptions, judges: Judges) -> Result<Self, String> {
        let pool = PoolState::new(Instant::ORIGIN, options.clone(), &mut Vec::new());
        let mut subject = Self {
            pool: pool.map_err(|error| error.to_string())?,
            model: None,
            story: Story::default(),
            kept: judges.keeps_inputs.then(Vec::new),
            fed: 0,
            had_others: false,
            owners: Vec::new(),
        };
        if judges.has_model {
            let model = Model::new(Instant::ORIGIN, options.clone());
            let model = model.map_err(|error| error.to_string())?.0;
            subject.model = Some(model);
        }
        subject.story.begins(options);
        Ok(subject)
    }

    pub(super) fn pool(&self) -> &PoolState<Tagged> {
        &self.pool
    }

    pub(super) fn is_ready(&self) -> bool {
        self.pool.snapshot().status == Status::Ready
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    /// Whether the pool is at rest: it has its minimum size, if maintenance is on, and no connection is
    /// pending. A pool never rests if its first connection reaches its idle time before the last one is
    /// established; such a pool counts as resting.
    pub(super) fn is_at_rest(&self, opening: Duration) -> bool {
        let snapshot = self.snapshot();
        if self.pool.options().maintenance == Some(Maintenance::Never) {
            return snapshot.pending == 0;
        }
        let is_filled = snapshot.total >= snapshot.min_pool_size;
        (is_filled && snapshot.pending == 0) || !self.can_rest(opening)
    }

    fn can_rest(&self, opening: Duration) -> bool {
        let options = self.pool.options();
        let all = opening * options.min_pool_size.unwrap_or_default() * 2;
        let lasts = |time: Option<Duration>| time.is_none_or(|time| time.is_zero() || time > all);
        lasts(options.max_idle_time) && lasts(options.max_lifetime)
    }

    /// Feeds a valid input, and checks the actions.
    pub(super) fn feed(
        &mut self,
        now: Instant,
        input: Input<Tagged>,
    ) -> Result<Vec<Action<Tagged>>, String> {
        self.keep(now, &input);
        let is_timer = matches!(input, Input::Timer);
        self.had_others |= matches!(input, Input::SetOptions { .. });
        let told = input.clone();
        self.owners.clear();
        self.owners.extend(owners(&self.pool));
        let actions = self.handle(now, input)?.ok_or("a valid input was refused")?;
        self.story.goes_on(&told, &actions, self.pool.now())?;
        if is_timer {
            self.expect_punctual()?;
        }
        self.expect_armed_timer()?;
        Ok(actions)
    }

    /// Checks that a request may get a connection: the one that it owned; or, if it owned none or lost it, one for
    /// which no earlier request waits. To be called before the answer is accounted for.
    // WQ-13, WQ-17
    pub(super) fn expect_turn(
        &self,
        accounting: &Accounting,
        request: WaiterId,
        connection: ConnId,
    ) -> Result<(), String> {
        if let Some(&(_, own)) = self.owners.iter().find(|&&(owner, _)| owner == request) {
            if own == connection {
                return Ok(());
            }
            if self.pool.connections().any(|other| other.id == own) {
                return Err(format!("{request} owns {own}, but gets {connection}"));
            }
        }
        let mut owners = owners(&self.pool);
        // Both are in arrival order.
        let mut before = accounting.waiting_before(request);
        match before.find(|&older| !owners.any(|(owner, _)| owner == older)) {
            Some(older) => Err(format!("{request} is served before {older}, which came first")),
            None => Ok(()),
        }
    }

    /// Feeds an invalid input, which has to be refused without any change.
    pub(super) fn feed_misuse(&mut self, now: Instant, input: Input<Tagged>) -> Result<(), String> {
        self.keep(now, &input);
        let before = self.pool.fingerprint();
        match self.handle(now, input)? {
            None if before == self.pool.fingerprint() => Ok(()),
            None => Err("a refused input changed the pool".to_owned()),
            Some(actions) => Err(format!("an invalid input was accepted: {actions:?}")),
        }
    }

    /// Checks the events once no more follow.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        std::mem::take(&mut self.story).ends()
    }

    fn keep(&mut self, now: Instant, input: &Input<Tagged>) {
        self.fed += 1;
        if let Some(kept) = &mut self.kept {
            kept.push((now, input.clone()));
        }
    }

    /// Returns the actions, or `None` if the input was refused.
    fn handle(
        &mut self,
        now: Instant,
        input: Input<Tagged>,
    ) -> Result<Option<Vec<Action<Tagged>>>, String> {
        if let Some(model) = &mut self.model {
            return lockstep::judge(&mut self.pool, model, now, input);
        }
        let mut actions = Vec::new();
        match self.pool.handle(now, input, &mut actions) {
            Ok(()) => {
                self.pool.check_invariants();
                Ok(Some(actions))
            }
            Err(_) if actions.is_empty() => Ok(None),
            Err(misuse) => Err(format!("refused ({misuse}), but emitted {actions:?}")),
        }
    }

    /// Checks that the timer is armed for every deadline: of waiters, of leak detection, of idle times and
    /// lifetimes, and of the minimum pool size.
    fn expect_armed_timer(&self) -> Result<(), String> {
        let armed = self.pool.next_deadline().map(|deadline| deadline.at);
        let is_set = |at: Instant| armed.is_some_and(|armed| armed <= at);
        let mut queued = self
            .pool
            .waiters()
            .filter(|waiter| !matches!(waiter.waits_for, WaitsFor::Establishment(_)));
        if let Some(waiter) = queued.find(|waiter| !waiter.deadline.is_none_or(is_set)) {
            return Err(format!("no timer is armed for the deadline of {}", waiter.id));
        }
        let limits = Limits::of(self.pool.options(), self.had_others);
        let is_forgotten = |connection: &ConnectionInfo| {
            let ends = limits.ends_of(connection, self.pool.now());
            ends.into_iter().flatten().any(|at| !is_set(at))
        };
        if limits.are_any()
            && let Some(forgotten) = self.pool.connections().find(is_forgotten)
        {
            return Err(format!("no timer is armed for the time limits of {}", forgotten.id));
        }
        let snapshot = self.snapshot();
        let lacks = snapshot.status == Status::Ready && snapshot.total < snapshot.min_pool_size;
        let options = self.pool.options();
        let is_paced =
            options.adaptive_connecting == Some(true) || options.overload_backoff.is_some();
        let paced = if is_paced { PoolOptions::MAX_OVERLOAD_BACKOFF } else { Duration::ZERO };
        let is_late = |pause: Duration| !is_set(self.pool.now() + pause + paced);
        if lacks && snapshot.pending == 0 && limits.pause.is_some_and(is_late) {
            return Err(format!("no timer is armed for the minimum pool size: {snapshot}"));
        }
        Ok(())
    }

    /// Checks after the timer fired that no waiter is overdue and nothing is due.
    fn expect_punctual(&self) -> Result<(), String> {
        let now = self.pool.now();
        let overdue = self.pool.waiters().find(|waiter| {
            let is_queued = !matches!(waiter.waits_for, WaitsFor::Establishment(_));
            is_queued && waiter.deadline.is_some_and(|deadline| deadline <= now)
        });
        if let Some(waiter) = overdue {
            return Err(format!("{} still waits after its deadline", waiter.id));
        }
        match self.pool.next_deadline() {
            Some(deadline) if deadline.at <= now => {
                Err(format!("after the timer {} is still due", deadline.reason))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The requests that own a connection, pending or draining, in arrival order.
fn owners(pool: &PoolState<Tagged>) -> impl Iterator<Item = (WaiterId, ConnId)> {
    pool.waiters().map_while(|WaiterInfo { id, waits_for, .. }| match waits_for {
        WaitsFor::Establishment(connection) | WaitsFor::PendingResponse(connection) => {
            Some((id, connection))
        }
        WaitsFor::Connection | WaitsFor::Permit | WaitsFor::Pacing | _ => None,
    })
}

/// The time limits in a pool's options.
struct Limits {
    idle: Option<Duration>,
    life: Option<Duration>,
    held: Option<Duration>,
    unanswered: Option<Duration>,
    /// The time until maintenance runs again, if it is on.
    pause: Option<Duration>,
}

impl Limits {
    /// `had_others`: some connections, reports and pauses are subject to earlier options.
    fn of(options: &PoolOptions, had_others: bool) -> Self {
        // Zero is no limit (OP-05, OP-07).
        let limit = |time: Option<Duration>| time.filter(|time| !time.is_zero());
        let pause = match options.maintenance {
            Some(Maintenance::Never) => None,
            Some(Maintenance::PauseAfterFailure(pause)) if !had_others => Some(pause),
            Some(Maintenance::PauseAfterFailure(_) | _) | None => Some(LONGEST_PAUSE),
        };
        Self {
            idle: limit(options.max_idle_time).filter(|_| pause.is_some()),
            life: limit(options.max_lifetime).filter(|_| pause.is_some() && !had_others),
            held: limit(options.leak_detection_threshold).filter(|_| !had_others),
            unanswered: limit(options.unanswered_threshold).filter(|_| !had_others),
            pause,
        }
    }

    /// Whether connections have any limits: checking all connections is slow.
    const fn are_any(&self) -> bool {
        self.idle.is_some()
            || self.life.is_some()
            || self.held.is_some()
            || self.unanswered.is_some()
    }

    /// The latest times at which a connection is to be closed or reported. What has passed
    /// its threshold was reported already.
    fn ends_of(&self, connection: &ConnectionInfo, now: Instant) -> [Option<Instant>; 2] {
        let &ConnectionInfo { state, since, created, .. } = connection;
        match state {
            // Strictly after its time (CO-10).
            ConnectionState::Available | ConnectionState::PendingResponse { .. } => [
                self.idle.map(|idle| since + idle + Duration::from_nanos(1)),
                self.life.map(|life| created + life),
            ],
            ConnectionState::InUse { .. } => {
                [self.held.map(|held| since + held).filter(|&at| at > now), None]
            }
            ConnectionState::Pending { .. } => {
                let at = self.unanswered.map(|unanswered| created + unanswered);
                [at.filter(|&at| at > now), None]
            }
            ConnectionState::Draining { .. } => [None, None],
        }
    }
}

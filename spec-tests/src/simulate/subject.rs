//! The pool, and those who watch it at every step.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::{
    Action, ConnectionInfo, ConnectionState, Input, Instant, Maintenance, PoolOptions, PoolState,
    PoolTypes, Snapshot, Status, WaiterId, WaiterInfo, WaitsFor,
};

use super::books::Books;
use crate::lockstep::{self, Comparable, Story};
use crate::model::Model;

/// An input and when it was fed.
pub(super) type Fed<S> = (Instant, Input<S>);

/// See the module.
pub(super) struct Subject<S: PoolTypes> {
    pool: PoolState<S>,
    model: Option<Model<S>>,
    story: Story,
    /// Everything that was fed, if somebody wants to have it.
    pub(super) kept: Option<Vec<Fed<S>>>,
    pub(super) fed: u64,
    /// There were other options: what was opened, told or failed under those goes by them.
    had_others: bool,
}

/// The default (T-37), and longer than any that a plan draws.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Who watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) has_model: bool,
    pub(super) keeps_inputs: bool,
}

impl<S: Comparable> Subject<S>
where
    S::Cause: fmt::Display,
{
    pub(super) fn new(options: &PoolOptions, watch: Watch) -> Result<Self, String> {
        let pool = PoolState::new(Instant::ORIGIN, options.clone(), &mut Vec::new());
        let mut subject = Self {
            pool: pool.map_err(|error| error.to_string())?,
            model: None,
            story: Story::default(),
            kept: watch.keeps_inputs.then(Vec::new),
            fed: 0,
            had_others: false,
        };
        if watch.has_model {
            let model = Model::new(Instant::ORIGIN, options.clone());
            subject.model = Some(model.map_err(|error| error.to_string())?.0);
        }
        subject.story.begins(options);
        Ok(subject)
    }

    pub(super) fn pool(&self) -> &PoolState<S> {
        &self.pool
    }

    pub(super) fn is_ready(&self) -> bool {
        self.pool.snapshot().status == Status::Ready
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    /// Whether the pool has come to rest: the minimum is there, if it is looked after, and nothing is
    /// being opened. Where one connection has been idle for too long before the last one is open, it
    /// never does, and nobody can ask for that.
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

    /// Feeds what makes sense, and judges what comes of it.
    pub(super) fn feed(&mut self, now: Instant, input: Input<S>) -> Result<Vec<Action<S>>, String> {
        self.keep(now, &input);
        let is_timer = matches!(input, Input::Timer);
        self.had_others |= matches!(input, Input::SetOptions { .. });
        let told = input.clone();
        let actions = self.handle(now, input)?.ok_or("a refusal of what makes sense")?;
        self.story.goes_on(&told, &actions, self.pool.now())?;
        if is_timer {
            self.expect_punctual()?;
        }
        self.expect_alarms()?;
        Ok(actions)
    }

    /// A request gets a connection: all that came before it, and are still without an answer, have a
    /// connection opened for each of them (WQ-03). To be asked before the answer is in the books.
    pub(super) fn expect_turn(&self, books: &Books, request: WaiterId) -> Result<(), String> {
        let mut before = books.waiting_before(request).peekable();
        if before.peek().is_none() {
            return Ok(());
        }
        let is_owner = |waiter: &WaiterInfo| matches!(waiter.waits_for, WaitsFor::Establishment(_));
        let mut owners = self.pool.waiters().take_while(is_owner).map(|waiter| waiter.id);
        // Both in the order in which they came.
        match before.find(|&older| !owners.any(|owner| owner == older)) {
            Some(older) => Err(format!("{request} is served before {older}, which came first")),
            None => Ok(()),
        }
    }

    /// Feeds what makes no sense: it has to come back, and nothing may have happened.
    pub(super) fn feed_misuse(&mut self, now: Instant, input: Input<S>) -> Result<(), String> {
        self.keep(now, &input);
        let before = self.pool.fingerprint();
        match self.handle(now, input)? {
            None if before == self.pool.fingerprint() => Ok(()),
            None => Err("a refused input left a trace".to_owned()),
            Some(actions) => Err(format!("what makes no sense was taken: {actions:?}")),
        }
    }

    /// At the end of everything.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        std::mem::take(&mut self.story).ends()
    }

    fn keep(&mut self, now: Instant, input: &Input<S>) {
        self.fed += 1;
        if let Some(kept) = &mut self.kept {
            kept.push((now, input.clone()));
        }
    }

    /// `None` is a refusal.
    fn handle(&mut self, now: Instant, input: Input<S>) -> Result<Option<Vec<Action<S>>>, String> {
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

    /// Whatever time will do to this pool, the timer is set for it: nobody waits past his time, nothing
    /// is held, idles or lives for too long, and a minimum that is not there is seen to.
    fn expect_alarms(&self) -> Result<(), String> {
        let alarm = self.pool.next_deadline().map(|deadline| deadline.at);
        let is_set = |at: Instant| alarm.is_some_and(|alarm| alarm <= at);
        let mut queued = self
            .pool
            .waiters()
            .filter(|waiter| !matches!(waiter.waits_for, WaitsFor::Establishment(_)));
        if let Some(waiter) = queued.find(|waiter| !waiter.deadline.is_none_or(is_set)) {
            return Err(format!("nobody will tell {} that its time is over", waiter.id));
        }
        let limits = Limits::of(self.pool.options(), self.had_others);
        let is_forgotten = |connection: &ConnectionInfo| {
            let ends = limits.ends_of(connection, self.pool.now());
            ends.into_iter().flatten().any(|at| !is_set(at))
        };
        if limits.are_any() {
            if let Some(forgotten) = self.pool.connections().find(is_forgotten) {
                return Err(format!("nobody will see that {} is over its time", forgotten.id));
            }
        }
        let snapshot = self.snapshot();
        let lacks = snapshot.status == Status::Ready && snapshot.total < snapshot.min_pool_size;
        let is_late = |pause: Duration| !is_set(self.pool.now() + pause);
        if lacks && snapshot.pending == 0 && limits.pause.is_some_and(is_late) {
            return Err(format!("nobody sees to the minimum: {snapshot}"));
        }
        Ok(())
    }

    /// The timer has fired: nobody waits past his time, and nothing is due any more.
    fn expect_punctual(&self) -> Result<(), String> {
        let now = self.pool.now();
        let overdue = self.pool.waiters().find(|waiter| {
            let is_queued = !matches!(waiter.waits_for, WaitsFor::Establishment(_));
            is_queued && waiter.deadline.is_some_and(|deadline| deadline <= now)
        });
        if let Some(waiter) = overdue {
            return Err(format!("{} still waits, whose time is over", waiter.id));
        }
        match self.pool.next_deadline() {
            Some(deadline) if deadline.at <= now => {
                Err(format!("after the timer {} is still due", deadline.reason))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// What a pool's options say of how long anything may take.
struct Limits {
    idle: Option<Duration>,
    life: Option<Duration>,
    held: Option<Duration>,
    /// Until the minimum is seen to again, if it is.
    pause: Option<Duration>,
}

impl Limits {
    /// `had_others`: there are connections, reports and pauses that go by other options.
    fn of(options: &PoolOptions, had_others: bool) -> Self {
        // Zero is no limit (OP-05, OP-07).
        let limit = |time: Option<Duration>| time.filter(|time| !time.is_zero());
        let pause = match options.maintenance {
            Some(Maintenance::Never) => None,
            Some(Maintenance::PauseAfterFailure(pause)) if !had_others => Some(pause),
            Some(Maintenance::PauseAfterFailure(_)) | None => Some(LONGEST_PAUSE),
        };
        Self {
            idle: limit(options.max_idle_time).filter(|_| pause.is_some()),
            life: limit(options.max_lifetime).filter(|_| pause.is_some() && !had_others),
            held: limit(options.leak_detection_threshold).filter(|_| !had_others),
            pause,
        }
    }

    /// Whether there are any for connections: looking at all of them takes its time.
    const fn are_any(&self) -> bool {
        self.idle.is_some() || self.life.is_some() || self.held.is_some()
    }

    /// When a connection is to be closed or told of, at the latest. What has been held for too long by
    /// now has been told of.
    fn ends_of(&self, connection: &ConnectionInfo, now: Instant) -> [Option<Instant>; 2] {
        let &ConnectionInfo { state, since, created, .. } = connection;
        match state {
            // Strictly after its time (CO-10).
            ConnectionState::Available => [
                self.idle.map(|idle| since + idle + Duration::from_nanos(1)),
                self.life.map(|life| created + life),
            ],
            ConnectionState::InUse { .. } => {
                [self.held.map(|held| since + held).filter(|&at| at > now), None]
            }
            ConnectionState::Pending { .. } => [None, None],
        }
    }
}

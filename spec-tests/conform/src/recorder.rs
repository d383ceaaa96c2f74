//! What happens while a scenario is played: events of the pool, and outcomes of check-outs.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::future::{Future, poll_fn};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use cenote_check::{Checker, Line, Report, event_json};
use cenote_core::address::ServerAddress;
use cenote_core::error::PoolError;
use cenote_core::pool::Event;
use serde_json::Value;

/// Records the events of a pool. The pool calls [`record`](Self::record) for every event, in order,
/// from any thread. A clone records into the same list.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    begun: Instant,
    changes: u64,
    wakers: Vec<Waker>,
    events: Vec<Value>,
    /// Checks the events, whatever the scenario expects of them.
    checker: Checker,
}

impl Default for State {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            changes: 0,
            wakers: Vec::new(),
            events: Vec::new(),
            checker: Checker::default(),
        }
    }
}

impl Recorder {
    /// Records an event that occurs now. Does not block.
    pub fn record<C: Display>(&self, event: &Event<C>, address: &ServerAddress) {
        let at = self.lock().begun.elapsed();
        self.record_at(event, address, at);
    }

    /// Records an event of a pool under virtual time; `at` counts from the beginning of the scenario.
    pub fn record_at<C: Display>(&self, event: &Event<C>, address: &ServerAddress, at: Duration) {
        let json = serde_json::to_value(event_json::official(event, address));
        let line = Line::of(event, address, at);
        self.change(|state| {
            state.checker.tell(&line);
            state.events.extend(json);
        });
    }

    /// Records something that no event tells.
    pub(crate) fn note(&self, line: &Line) {
        self.lock().checker.tell(line);
    }

    /// How long ago the scenario began, in real time.
    pub(crate) fn elapsed(&self) -> Duration {
        self.lock().begun.elapsed()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.lock().events.clone()
    }

    /// How many events of this type were recorded.
    pub(crate) fn count(&self, event: &str) -> usize {
        self.lock().events.iter().filter(|seen| seen["type"] == event).count()
    }

    /// The rules that the events break.
    pub(crate) fn finish(&self) -> Report {
        std::mem::take(&mut self.lock().checker).finish()
    }

    /// Everything that happens from now on is progress.
    pub(crate) fn progress(&self) -> Progress {
        Progress { seen: self.lock().changes, shared: Arc::clone(&self.0) }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        state.changes += 1;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.0.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

/// Waits for the next event or outcome of a check-out.
#[derive(Debug)]
pub struct Progress {
    seen: u64,
    shared: Arc<Shared>,
}

impl Progress {
    /// Blocks until something has happened since this value was made, at most for `limit`.
    pub fn wait(&self, limit: Duration) {
        let state = lock(&self.shared.state);
        let waits = |state: &mut State| state.changes == self.seen;
        drop(self.shared.changed.wait_timeout_while(state, limit, waits));
    }

    /// Waits until something has happened since this value was made. Cancel-safe.
    pub fn made(&self) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(|context| {
            let mut state = lock(&self.shared.state);
            if state.changes != self.seen {
                return Poll::Ready(());
            }
            state.wakers.push(context.waker().clone());
            Poll::Pending
        })
    }
}

/// Takes the outcome of one check-out. A pool that drops it instead has lost the check-out, which is
/// a failure unless the check-out was cancelled.
pub struct Reply<C> {
    number: u64,
    inbox: Inbox<C>,
    is_sent: bool,
}

impl<C> Reply<C> {
    /// The check-out ends with a connection or an error. Can be called from any thread.
    pub fn send(mut self, outcome: Result<C, PoolError>) {
        self.is_sent = true;
        self.inbox.insert(self.number, Some(outcome));
    }
}

impl<C> Drop for Reply<C> {
    fn drop(&mut self) {
        if !self.is_sent {
            self.inbox.insert(self.number, None);
        }
    }
}

impl<C> fmt::Debug for Reply<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The outcome of a check-out; `None` if the pool has lost it.
pub(crate) type Outcome<C> = Option<Result<C, PoolError>>;

/// Outcomes of check-outs, by their number.
pub(crate) struct Inbox<C> {
    recorder: Recorder,
    outcomes: Arc<Mutex<BTreeMap<u64, Outcome<C>>>>,
}

impl<C> Inbox<C> {
    pub(crate) fn new(recorder: &Recorder) -> Self {
        Self { recorder: recorder.clone(), outcomes: Arc::default() }
    }

    pub(crate) fn reply(&self, number: u64) -> Reply<C> {
        let Self { recorder, outcomes } = self;
        let inbox = Self { recorder: recorder.clone(), outcomes: Arc::clone(outcomes) };
        Reply { number, inbox, is_sent: false }
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        lock(&self.outcomes).contains_key(&number)
    }

    pub(crate) fn take(&self, number: u64) -> Option<Outcome<C>> {
        lock(&self.outcomes).remove(&number)
    }

    pub(crate) fn take_all(&self) -> BTreeMap<u64, Outcome<C>> {
        std::mem::take(&mut *lock(&self.outcomes))
    }

    fn insert(&self, number: u64, outcome: Outcome<C>) {
        lock(&self.outcomes).insert(number, outcome);
        self.recorder.change(|_| ());
    }
}

/// The state is consistent after every statement, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

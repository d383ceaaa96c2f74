//! The loop on which connections are opened and servers watched: sockets, timers, and what goes on
//! when one of them is ready. It knows nothing of pools.
//!
//! ```text
//! mod       the handle, and what threads leave for the loop
//! turn      one turn: whatever can go on goes on
//! watched   a socket on the loop
//! sleep     waiting for a time
//! helper    work that blocks, on a thread of its own
//! ```

mod helper;
mod sleep;
mod turn;
mod watched;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use mio::{Registry, Token};
use slab::Slab;

pub(crate) use self::helper::{Answer, Promise, promise};
pub(crate) use self::sleep::{Sleeper, timeout_at};
use self::turn::Tasks;
pub use self::watched::Watched;

/// The event loop on which connections are opened, as a [`Connector`](crate::Connector) gets to see
/// it: [`Target::event_loop`](crate::Target::event_loop).
///
/// What a connector's future waits for has to come from here, or has to wake it as
/// [`std::task::Waker`] says, from any thread. A clone is the same loop.
#[derive(Clone)]
pub struct EventLoop {
    inner: Arc<Inner>,
    /// Whose: each numbers what it starts for itself.
    party: Party,
}

/// One of those who share a loop: a pool, or whoever watches a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Party(u64);

/// What somebody has going on: by whom, and by which number of his.
type Name = (Party, u64);

pub(crate) struct Inner {
    /// `None` if it has never been there.
    registry: Option<Registry>,
    /// Those that sockets may have.
    tokens: Range<usize>,
    /// Ends the wait for events, from any thread.
    wake: Box<dyn Fn() + Send + Sync>,
    /// Whether work that blocks may have a thread.
    has_threads: bool,
    state: Mutex<State>,
    /// Locked for as long as a turn takes.
    tasks: Mutex<Tasks>,
}

/// What goes on by itself on the loop.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct State {
    /// It will look at all of this before it waits for events again.
    is_awake: bool,
    /// It will never look at anything again.
    is_over: bool,
    /// Who waits for which socket.
    sources: Slab<Option<Waker>>,
    timers: BTreeMap<(Instant, u64), Waker>,
    /// How many timers there have been, so that two of one time are two.
    timers_made: u64,
    /// The last one who came to share the loop.
    last_party: Party,
    started: Vec<(Name, Work)>,
    stopped: Vec<Name>,
    called: Vec<Name>,
    woken: Vec<usize>,
}

impl EventLoop {
    pub(crate) fn new(
        registry: Registry,
        tokens: Range<usize>,
        wake: impl Fn() + Send + Sync + 'static,
        has_threads: bool,
    ) -> Self {
        let (state, tasks) = (Mutex::default(), Mutex::default());
        let (registry, wake) = (Some(registry), Box::new(wake));
        let inner = Inner { registry, tokens, wake, has_threads, state, tasks };
        Self { inner: Arc::new(inner), party: Party::default() }
    }

    /// The same loop for another one to share it, who numbers what he starts for himself.
    pub(crate) fn share(&self) -> Self {
        let mut state = self.inner.state();
        state.last_party.0 += 1;
        Self { inner: Arc::clone(&self.inner), party: state.last_party }
    }

    /// One that is over, in the place of another one, whose part of the operating system it does not
    /// keep.
    pub(crate) fn over() -> Self {
        let state = State { is_awake: true, is_over: true, ..State::default() };
        let (state, tasks) = (Mutex::new(state), Mutex::default());
        let (tokens, wake) = (0..0, Box::new(|| {}));
        let inner = Inner { registry: None, tokens, wake, has_threads: false, state, tasks };
        Self { inner: Arc::new(inner), party: Party::default() }
    }

    /// Has `work` go on by itself until it is done or [stopped](Self::stop) by its number.
    pub(crate) fn start(&self, number: u64, work: Work) {
        let mut state = self.inner.state();
        if state.is_over {
            drop(state);
            drop(work); // Not under the lock: it may have something to say.
            return;
        }
        state.started.push(((self.party, number), work));
        self.inner.rouse(state);
    }

    /// Drops the work of this number, if it is not done.
    pub(crate) fn stop(&self, number: u64) {
        let mut state = self.inner.state();
        if !state.is_over {
            state.stopped.push((self.party, number));
            self.inner.rouse(state);
        }
    }

    /// Has the work of this number be looked at, if it is not done: there is news for it.
    pub(crate) fn call(&self, number: u64) {
        let mut state = self.inner.state();
        if !state.is_over {
            state.called.push((self.party, number));
            self.inner.rouse(state);
        }
    }

    /// Has the loop look again when it has to wake up.
    pub(crate) fn nudge(&self) {
        self.inner.rouse(self.inner.state());
    }

    /// How long the loop may wait for events: until the first time that somebody sleeps until, and
    /// not at all while there is something to do. From now on it is woken when that is too long.
    pub(crate) fn fall_asleep(&self) -> Option<Duration> {
        let mut state = self.inner.state();
        if state.has_work() {
            return Some(Duration::ZERO);
        }
        state.is_awake = false;
        let ((at, _), _) = state.timers.first_key_value()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Something happened to a socket. `false` if it is none of this loop's.
    pub(crate) fn ready(&self, Token(token): Token) -> bool {
        let Self { inner, .. } = self;
        if !inner.tokens.contains(&token) {
            return false;
        }
        let key = token - inner.tokens.start;
        // An event may come late, for a socket that is closed by now.
        let waker = inner.state().sources.get_mut(key).and_then(Option::take);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Nothing goes on, and nothing is left to be done.
    pub(crate) fn is_idle(&self) -> bool {
        self.inner.tasks().is_empty() && !self.inner.state().has_work()
    }

    /// Drops whatever goes on, now and later.
    pub(crate) fn end(&self) {
        let state = {
            let mut state = self.inner.state();
            let ended = State { is_awake: true, is_over: true, ..State::default() };
            std::mem::replace(&mut *state, ended)
        };
        let tasks = std::mem::take(&mut *self.inner.tasks());
        // Without a lock: both may have something to say.
        drop((state, tasks));
    }

    /// Holds the loop where it is harmless: between two turns, and with nobody telling it anything.
    pub(crate) fn hold<R>(&self, work: impl FnOnce() -> R) -> R {
        let _tasks = self.inner.tasks();
        let _state = self.inner.state();
        work()
    }

    /// As [`end`](Self::end), in a child process, where whoever had a lock does not exist: then
    /// what is locked is lost. So is what others have on the loop, whose locks nobody has looked at.
    pub(crate) fn abandon(self) {
        let Self { inner, party } = self;
        let is_locked = inner.state.try_lock().is_err() || inner.tasks.try_lock().is_err();
        if is_locked || inner.state().last_party != Party::default() {
            std::mem::forget(inner);
        } else {
            Self { inner, party }.end();
        }
    }

    /// Whether the application turns it.
    pub(crate) fn is_embedded(&self) -> bool {
        !self.inner.has_threads
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is something to do. Who sleeps is woken once.
    fn rouse(&self, mut state: MutexGuard<'_, State>) {
        let was_awake = std::mem::replace(&mut state.is_awake, true);
        drop(state);
        if !was_awake {
            (self.wake)();
        }
    }

    fn registry(&self) -> io::Result<&Registry> {
        self.registry.as_ref().ok_or_else(|| io::Error::other("the event loop is over"))
    }

    /// The number of a socket's token.
    fn enlist(&self) -> io::Result<Token> {
        let mut state = self.state();
        let key = state.sources.vacant_key();
        if key >= self.tokens.len() {
            return Err(io::Error::other(format!(
                "all {} tokens of the event loop are taken: give it more",
                self.tokens.len()
            )));
        }
        state.sources.insert(None);
        Ok(Token(self.tokens.start + key))
    }

    fn delist(&self, Token(token): Token) {
        // The loop may have ended, and forgotten all of them.
        let waker = self.state().sources.try_remove(token - self.tokens.start);
        drop(waker);
    }
}

impl State {
    fn has_work(&self) -> bool {
        let Self { started, stopped, called, woken, .. } = self;
        !(started.is_empty() && stopped.is_empty() && called.is_empty() && woken.is_empty())
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop").field("tokens", &self.inner.tokens).finish_non_exhaustive()
    }
}

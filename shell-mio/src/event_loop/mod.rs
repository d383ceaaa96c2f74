//! The event loop on which connections are opened and servers monitored. It knows nothing of pools.
//!
//! ```text
//! mod            the handle: what other threads put into the loop's queues
//! tasks          one turn: polls every task that was woken
//! sleep          timers
//! watched        a socket that is registered with the loop
//! socket         TCP or Unix domain socket
//! helper_thread  work that blocks, on a thread of its own
//! runtime        the loop as a cenote_shell::runtime::Runtime and Network
//! ```

mod helper_thread;
mod runtime;
mod sleep;
mod socket;
mod tasks;
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

use cenote_shell::runtime::contain;
use cenote_shell::runtime::system_resolver::SystemResolver;
use mio::{Registry, Token};
use slab::Slab;

use self::helper_thread::HelperThreads;
pub(crate) use self::runtime::Waiter;
pub use self::socket::OpenSocket;
pub(crate) use self::socket::Socket;
use self::tasks::Tasks;
pub use self::watched::Watched;

/// The event loop of a pool: its runtime.
///
/// A [`Connector`](crate::Connector) gets it as [`Target::runtime`](cenote_shell::connection::Target::runtime). The futures
/// that a connector waits for come from here, or wake the task from another thread, as every
/// [`Future`] does. Futures that need another runtime, such as tokio's sockets, do not work here.
///
/// A clone is the same event loop.
#[derive(Clone)]
pub struct EventLoop {
    inner: Arc<Inner>,
}

/// What the loop is for, and which thread turns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// For one pool, turned by the pool's thread.
    Pool,
    /// For all pools and monitors of a client, turned by the client's thread.
    Client,
    /// For an embedded pool, turned by the application. There are no other threads.
    Application,
}

pub(crate) struct Inner {
    /// The tokens that sockets may have.
    tokens: Range<usize>,
    owner: Owner,
    resolver: SystemResolver,
    helpers: HelperThreads,
    state: Mutex<State>,
    /// Locked for the duration of a turn. Taken before `state`.
    tasks: Mutex<Tasks>,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct State {
    /// Not there after the [end](EventLoop::end): a pool that outlives its loop keeps no file descriptor.
    poll: Option<Arc<PollHandle>>,
    /// The loop looks at all of this before it waits for events again.
    is_awake: bool,
    /// The wakers of the tasks that wait for a socket.
    sockets: Slab<Option<Waker>>,
    timers: BTreeMap<(Instant, u64), Waker>,
    /// The number of the last timer, which tells timers of the same time apart.
    last_timer: u64,
    /// The number of the last task.
    last_task: u64,
    spawned: Vec<(u64, Work)>,
    stopped: Vec<u64>,
    woken: Vec<u64>,
}

/// The operating system's part of the loop.
struct PollHandle {
    registry: Registry,
    /// Ends the wait for events, from any thread.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl EventLoop {
    pub(crate) fn new(
        registry: Registry,
        tokens: Range<usize>,
        wake: impl Fn() + Send + Sync + 'static,
        owner: Owner,
    ) -> Self {
        let poll = Some(Arc::new(PollHandle { registry, wake: Box::new(wake) }));
        let state = Mutex::new(State { poll, ..State::default() });
        let (resolver, helpers, tasks) = Default::default();
        Self { inner: Arc::new(Inner { tokens, owner, resolver, helpers, state, tasks }) }
    }

    /// How long to wait for events at most: until the first timer, and not at all while a task can go
    /// on. Until the next turn, other threads wake the loop when that gets shorter.
    pub(crate) fn fall_asleep(&self) -> Option<Duration> {
        let mut state = self.inner.state();
        if state.has_work() {
            return Some(Duration::ZERO);
        }
        state.is_awake = false;
        let ((at, _), _) = state.timers.first_key_value()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Ends the loop's wait for events.
    pub(crate) fn wake(&self) {
        self.inner.wake(self.inner.state());
    }

    /// Wakes the task that waits for this socket. Returns `false` if the token is not one of this loop.
    pub(crate) fn socket_event(&self, Token(token): Token) -> bool {
        if !self.inner.tokens.contains(&token) {
            return false;
        }
        let key = token - self.inner.tokens.start;
        // An event may come late, for a socket that is closed by now.
        let waker = self.inner.state().sockets.get_mut(key).and_then(Option::take);
        wake_all(waker);
        true
    }

    /// Whether there is no task, so that nothing can ever happen by itself.
    pub(crate) fn is_idle(&self) -> bool {
        self.inner.tasks().is_empty() && !self.inner.state().has_work()
    }

    /// Drops all tasks, now and later, and closes the loop's file descriptors.
    pub(crate) fn end(&self) {
        let mut state = std::mem::take(&mut *self.inner.state());
        let tasks = std::mem::take(&mut *self.inner.tasks());
        let timers = std::mem::take(&mut state.timers);
        // Without the locks: tasks that are dropped may use the loop.
        drop((state, tasks));
        // Other threads that sleep.
        wake_all(timers.into_values());
    }

    /// Runs `work` between two turns, while no other thread uses the loop.
    pub(crate) fn hold<R>(&self, work: impl FnOnce() -> R) -> R {
        let _tasks = self.inner.tasks();
        let _state = self.inner.state();
        work()
    }

    /// As [`end`](Self::end), in a child process. What a thread that does not exist here had locked leaks,
    /// and so do the tasks of a client's loop: they belong to other pools, whose locks may be held, too.
    pub(crate) fn abandon(self) {
        let is_locked =
            self.inner.state.try_lock().is_err() || self.inner.tasks.try_lock().is_err();
        if is_locked || self.inner.owner == Owner::Client {
            std::mem::forget(self);
        } else {
            self.end();
        }
    }

    /// Whether the application turns it. Then there are no threads.
    pub(crate) fn is_embedded(&self) -> bool {
        self.inner.owner == Owner::Application
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the wait for events, once for each wait.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.is_awake, true) {
            return;
        }
        let poll = state.poll.clone();
        drop(state);
        if let Some(poll) = poll {
            (poll.wake)();
        }
    }

    /// A free token, and where to register it.
    fn take_token(&self) -> io::Result<(Token, Arc<PollHandle>)> {
        let mut state = self.state();
        let poll = state.poll()?;
        let key = state.sockets.vacant_key();
        if key >= self.tokens.len() {
            let count = self.tokens.len();
            let reason = format!("all {count} tokens of the event loop are in use: give it more");
            return Err(io::Error::other(reason));
        }
        state.sockets.insert(None);
        Ok((Token(self.tokens.start + key), poll))
    }

    fn free_token(&self, Token(token): Token) {
        // A loop that has ended does not know its tokens any more.
        let waker = self.state().sockets.try_remove(token - self.tokens.start);
        drop(waker);
    }
}

impl State {
    fn poll(&self) -> io::Result<Arc<PollHandle>> {
        self.poll.clone().ok_or_else(|| io::Error::other("the event loop has ended"))
    }

    fn has_ended(&self) -> bool {
        self.poll.is_none()
    }

    fn has_work(&self) -> bool {
        let Self { spawned, stopped, woken, .. } = self;
        !(spawned.is_empty() && stopped.is_empty() && woken.is_empty())
    }
}

/// Wakes all of them, without a lock. One that panics does not keep the others waiting.
fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        contain(|| waker.wake());
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop")
            .field("tokens", &self.inner.tokens)
            .field("owner", &self.inner.owner)
            .finish_non_exhaustive()
    }
}

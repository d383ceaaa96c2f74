//! One server that is watched: the monitor's machine under its lock, and what is done outside of it.
//!
//! What is decided, told and done in which order, all shells have in common. A shell brings sockets,
//! a timer and a pool: [`MonitorRuntime`].

mod inner;
mod subscribers;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::address::ServerAddress;
use cenote_core::client::Candidate;
use cenote_core::connect::{Command, EstablishOptions};
use cenote_core::monitor::{
    Action, Event, Input, InvalidMonitorOptions, MonitorOptions, ServerDescription, SocketId,
};
use cenote_core::pool::Instant;
use cenote_core::sdam::{self, Verdict};
use cenote_core::wire::Flags;

use crate::failure::{DeferredEffects, Failure};
use crate::outbox;

pub use self::inner::{MonitorInner, Outcome, PoolChange};
pub use self::subscribers::{ServerSubscriber, ServerSubscribers};

/// What a shell watches a server with.
pub trait MonitorRuntime: Send + Sync + Sized + 'static {
    /// The time, as the monitor's machine counts it.
    fn now(&self) -> Instant;

    /// Feeds the pool at once, under the watch's lock. What comes of that is settled without it.
    fn change_pool(&self, change: PoolChange) -> DeferredEffects;

    /// Opens a socket: [`Action::Open`].
    fn open(watch: &Arc<MonitorDriver<Self>>, socket: SocketId);

    /// Writes on it: [`Action::Send`].
    fn send(&self, socket: SocketId, command: Command, flags: Flags);

    /// Drops it: [`Action::Close`].
    fn close(&self, socket: SocketId);

    /// Calls [`MonitorDriver::tell`]: on this thread, which a shell may want to know.
    fn tell(watch: &Arc<MonitorDriver<Self>>, event: Event);

    /// Whoever waits for a server looks again.
    fn tell_who_waits(&self);

    /// The timer has to ring earlier than it was told, when [`MonitorInner::arm`] says.
    fn call_timer(&self);
}

/// A monitor, its pool, and who is told.
pub struct MonitorDriver<M> {
    address: Arc<ServerAddress>,
    subscribers: Arc<ServerSubscribers>,
    runtime: M,
    desk: Mutex<MonitorInner>,
}

/// What one input has brought about for others than the server.
#[derive(Default)]
struct Consequences {
    fed: Vec<DeferredEffects>,
    outcome: Outcome,
}

impl<M: MonitorRuntime> MonitorDriver<M> {
    /// Nothing is done yet: see [`begin`](Self::begin).
    ///
    /// # Errors
    ///
    /// Options that contradict each other.
    pub fn new(
        (address, subscribers): (Arc<ServerAddress>, Arc<ServerSubscribers>),
        (options, establish): (MonitorOptions, Arc<EstablishOptions>),
        runtime: M,
    ) -> Result<Arc<Self>, InvalidMonitorOptions> {
        let desk = Mutex::new(MonitorInner::new(runtime.now(), options, establish)?);
        Ok(Arc::new(Self { address, subscribers, runtime, desk }))
    }

    /// Begins with the first check. The timer is the shell's to start, before that.
    pub fn begin(self: &Arc<Self>) {
        self.release(self.lock(), Consequences::default());
    }

    /// Feeds one input, and does what it brings about.
    pub fn feed(self: &Arc<Self>, input: Input) {
        let mut desk = self.lock();
        let consequences = self.handle(&mut desk, input);
        self.release(desk, consequences);
    }

    /// SDAM's say about a connection of the pool: description, monitor and pool at once.
    pub fn application_failed(self: &Arc<Self>, failure: &Failure<'_>) {
        let mut desk = self.lock();
        let context = failure.context(desk.topology_version());
        let verdict = sdam::verdict(&context, failure.error());
        if verdict == Verdict::default() {
            return;
        }
        let input = Input::ApplicationFailed { error: failure.error().clone(), verdict };
        let mut consequences = self.handle(&mut desk, input);
        consequences.fed.extend(failure.clear_within(verdict.pool));
        self.release(desk, consequences);
    }

    /// Has it checked as soon as may be.
    pub fn request_check(self: &Arc<Self>) {
        self.feed(Input::RequestCheck);
    }

    /// Tells everybody, for [`MonitorRuntime::tell`].
    pub fn tell(&self, event: Event) {
        self.subscribers.tell(&self.address, event);
    }
}

/// To look at.
impl<M> MonitorDriver<M> {
    /// Which server it is.
    pub const fn address(&self) -> &Arc<ServerAddress> {
        &self.address
    }

    /// What is known of it.
    pub fn description(&self) -> Arc<ServerDescription> {
        Arc::clone(self.lock().description())
    }

    /// What it is now, for who chooses a server.
    pub fn candidate(&self) -> Candidate {
        self.lock().candidate()
    }

    /// What the shell brings.
    pub const fn runtime(&self) -> &M {
        &self.runtime
    }

    /// The lock. It comes before the pool's.
    pub fn lock(&self) -> MutexGuard<'_, MonitorInner> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: MonitorRuntime> MonitorDriver<M> {
    fn handle(&self, desk: &mut MonitorInner, input: Input) -> Consequences {
        let mut fed = Vec::new();
        let outcome = desk.handle(self.runtime.now(), input, |change| {
            fed.push(self.runtime.change_pool(change));
        });
        Consequences { fed, outcome }
    }

    /// The server's own story first, then what it runtime for the pool, then for who waits. The timer
    /// does not wait for whoever is told of any of that.
    fn release(
        self: &Arc<Self>,
        mut desk: MutexGuard<'_, MonitorInner>,
        consequences: Consequences,
    ) {
        let Consequences { fed, outcome } = consequences;
        let actions = desk.claim();
        drop(desk);
        if outcome.is_due_earlier {
            self.runtime.call_timer();
        }
        if let Some(actions) = actions {
            drop(outbox::drain(|| self.lock(), actions, |action| self.perform(action)));
        }
        fed.into_iter().for_each(|settle| settle());
        if outcome.is_news {
            self.runtime.tell_who_waits();
        }
    }

    fn perform(self: &Arc<Self>, action: Action) {
        match action {
            Action::Open { socket, .. } => M::open(self, socket),
            Action::Send { socket, command, flags } => self.runtime.send(socket, command, flags),
            Action::Close { socket } => self.runtime.close(socket),
            Action::EmitEvent(event) => M::tell(self, event),
            Action::MarkReady | Action::ClearPool { .. } => {
                unreachable!("done under the lock")
            }
        }
    }
}

impl<M> fmt::Debug for MonitorDriver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorDriver").field("address", &self.address).finish_non_exhaustive()
    }
}

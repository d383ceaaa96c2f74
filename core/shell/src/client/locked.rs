//! What is under the lock of a client.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cenote_core::address::ServerAddress;
use cenote_core::client::Described;
use cenote_core::client::machine::{
    Action, Chosen, ClientState, Event, Input, PoolChange, SelectionId,
};
use cenote_core::outbox::Outbox;
use cenote_core::pool::{self, Instant};
use cenote_core::topology::ServerId;

use super::Server;
use super::request::{Candidates, Waiter};
use super::server::RemovedServer;
use crate::connection::MongoConnector;
use crate::notifications::NotificationQueue;
use crate::pool::PoolDriver;
use crate::runtime::Network;
use crate::runtime::platform::random;
use crate::trace::Recorded;

/// The machine, its actions that are not performed yet, and its timer.
pub(super) struct Locked<R: Network> {
    pub(super) state: Recorded<ClientState<Arc<Waiter>>>,
    /// In the machine's order. No subscriber delays them.
    pub(super) work: Outbox<Action<Arc<Waiter>>>,
    pub(super) notifications: NotificationQueue<Event>,
    /// Those whose pools were made and not closed: in the order of the connection string, then those that were found.
    servers: BTreeMap<ServerId, Arc<Server<R>>>,
    removed: Vec<RemovedServer<R>>,
    /// Pools of removed servers whose subscribers were not told yet.
    closed: Vec<Arc<PoolDriver<R, MongoConnector<R>>>>,
    timer: Timer,
    last_selection: SelectionId,
    pub(super) is_closed: bool,
}

#[derive(Default)]
struct Timer {
    /// When it fires.
    armed: Option<Instant>,
    /// Of the task, while it sleeps.
    waker: Option<Waker>,
}

/// What is left to do for an input when the lock is released, besides the actions. Dropped, it does so, and has the
/// subscribers of pools told.
pub(super) struct Effects<R: Network> {
    timer: Option<Waker>,
    answered: Vec<Arc<Waiter>>,
    /// Pools that were fed, and have work left.
    fed: Vec<Arc<PoolDriver<R, MongoConnector<R>>>>,
    /// Pools whose subscribers were not told yet.
    untold: Vec<Arc<PoolDriver<R, MongoConnector<R>>>>,
    /// Servers that were removed: the last handle of a pool closes it, and tells.
    kept: Vec<Arc<Server<R>>>,
}

impl<R: Network> Locked<R> {
    /// With what the machine did when it was made.
    pub(super) fn new(
        state: Recorded<ClientState<Arc<Waiter>>>,
        first: Vec<Action<Arc<Waiter>>>,
        event_queue: usize,
    ) -> Self {
        let (mut work, mut notifications) =
            (Outbox::default(), NotificationQueue::new(event_queue));
        for action in first {
            if let Action::EmitEvent(event) = action {
                push(event, &mut notifications);
            } else {
                work.push(action);
            }
        }
        Self {
            state,
            work,
            notifications,
            servers: BTreeMap::new(),
            removed: Vec::new(),
            closed: Vec::new(),
            timer: Timer::default(),
            last_selection: SelectionId(0),
            is_closed: false,
        }
    }

    /// Feeds one input. What concerns pools is fed to them at once, so that no other thread selects a server whose pool
    /// does not match its description; callers are answered; other actions wait until the lock is released.
    // CLR-15, SD-02, SD-04
    pub(super) fn handle(
        &mut self,
        now: Instant,
        input: Input<Arc<Waiter>>,
        effects: &mut Effects<R>,
    ) {
        if matches!(input, Input::Close) {
            self.close(effects);
        }
        let Self { state, work, notifications, servers, .. } = self;
        let mut sink = |action: Action<Arc<Waiter>>| match action {
            Action::FeedPool { server, change, follows } => {
                let server = servers.get(&server);
                effects.fed.extend(server.and_then(|server| feed(server, change, follows)));
            }
            Action::Deliver { waiter, outcome } => {
                waiter.answer(outcome);
                effects.answered.push(waiter);
            }
            Action::EmitEvent(event) => push(event, notifications),
            Action::OpenPool { .. }
            | Action::ClosePool { .. }
            | Action::OpenSocket { .. }
            | Action::Send { .. }
            | Action::CloseSocket { .. }
            | Action::LookUp { .. }
            | Action::ReportRecords(_) => work.push(action),
        };
        if let Err(misuse) = state.handle(now, input, &mut sink) {
            unreachable!("the shell breaks the contract of the machine: {misuse}");
        }
        state.call_writer_if_full();
        effects.timer = self.timer_if_due_earlier();
    }

    /// From now on the list of servers stays as it is.
    fn close(&mut self, effects: &mut Effects<R>) {
        let left = mem::take(&mut self.servers);
        for (id, server) in left {
            if self.is_closed || self.state.address(id).is_some() {
                self.servers.insert(id, server);
            } else {
                self.removed.push(RemovedServer::of(&server));
                effects.kept.push(server);
            }
        }
        self.is_closed = true;
    }

    /// The number of the next request for a server.
    pub(super) const fn next_selection(&mut self) -> SelectionId {
        self.last_selection = SelectionId(self.last_selection.0 + 1);
        self.last_selection
    }

    /// By which two of the servers that fit are drawn.
    pub(super) fn draw(&self) -> u64 {
        if self.servers.len() > 1 { random() } else { 0 }
    }

    /// `None` if they were removed meanwhile.
    pub(super) fn candidates(&self, chosen: Chosen) -> Option<Candidates<R>> {
        let server = |id| self.servers.get(&id).cloned();
        let second = chosen.second.and_then(server);
        match (server(chosen.first), second) {
            (Some(first), second) => Some(Candidates { first, second }),
            (None, second) => second.map(|first| Candidates { first, second: None }),
        }
    }
}

/// Servers.
impl<R: Network> Locked<R> {
    pub(super) fn server(&self, id: ServerId) -> Option<&Arc<Server<R>>> {
        self.servers.get(&id)
    }

    pub(super) fn server_at(&self, address: &ServerAddress) -> Option<Arc<Server<R>>> {
        if self.is_closed {
            return self.servers.values().find(|server| server.address() == address).cloned();
        }
        self.servers.get(&self.state.id(address)?).cloned()
    }

    /// Those of them whose pools were made.
    pub(super) fn servers_at(&self, described: &[Described<'_>]) -> Vec<Arc<Server<R>>> {
        described.iter().filter_map(|(address, _)| self.server_at(address)).collect()
    }

    /// Those of the topology, and of a client that is closed those that it had.
    pub(super) fn servers(&self) -> Vec<Arc<Server<R>>> {
        let is_listed = |id| self.is_closed || self.state.address(id).is_some();
        let servers = self.servers.iter().filter(|(id, _)| is_listed(**id));
        servers.map(|(_, server)| Arc::clone(server)).collect()
    }

    /// Those, and the ones that were removed and of which something is left.
    pub(super) fn all_servers(&self) -> Vec<Arc<Server<R>>> {
        let removed = self.removed.iter().filter_map(RemovedServer::upgrade);
        self.servers.values().cloned().chain(removed).collect()
    }

    pub(super) fn add_server(&mut self, id: ServerId, server: Arc<Server<R>>) {
        self.servers.insert(id, server);
    }

    /// Its pool is to be closed. That of a client that is closed was closed with it.
    pub(super) fn remove_server(&mut self, id: ServerId) -> Option<Arc<Server<R>>> {
        if self.is_closed {
            return None;
        }
        let server = self.servers.remove(&id)?;
        // At each power of two: a member may remove a thousand at once.
        if self.removed.len().is_power_of_two() {
            self.removed.retain(RemovedServer::is_left);
        }
        self.removed.push(RemovedServer::of(&server));
        Some(server)
    }

    /// The pool of a removed server was closed. Its subscribers are to be told before those of another pool of that server.
    pub(super) fn closed(&mut self, pool: &Arc<PoolDriver<R, MongoConnector<R>>>) {
        self.closed.push(Arc::clone(pool));
    }

    /// Those of which that is to be done now.
    pub(super) fn take_closed(&mut self) -> Vec<Arc<PoolDriver<R, MongoConnector<R>>>> {
        mem::take(&mut self.closed)
    }
}

/// The timer.
impl<R: Network> Locked<R> {
    /// Sets the timer to the machine's next deadline, and returns that.
    pub(super) fn arm_timer(&mut self) -> Option<Instant> {
        self.timer.armed = self.state.next_deadline();
        self.timer.armed
    }

    /// Ready when the timer is no longer set to `armed`.
    pub(super) fn poll_rearmed(&mut self, armed: Option<Instant>, cx: &Context<'_>) -> Poll<()> {
        if self.timer.armed != armed {
            return Poll::Ready(());
        }
        // The task polls with its own waker, so that dropping the old one never drops the task.
        self.timer.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn timer_if_due_earlier(&mut self) -> Option<Waker> {
        let due = self.state.next_deadline()?;
        if self.timer.armed.is_some_and(|armed| armed <= due) {
            return None;
        }
        self.timer.armed = Some(due);
        self.timer.waker.take()
    }
}

/// Nobody subscribes to what the topology is told.
fn push(event: Event, notifications: &mut NotificationQueue<Event>) {
    if !matches!(event, Event::ToTopology(_)) {
        notifications.push(event);
    }
}

/// Returns the pool if something is left to do for it.
fn feed<R: Network>(
    server: &Server<R>,
    change: PoolChange,
    follows: Option<u64>,
) -> Option<Arc<PoolDriver<R, MongoConnector<R>>>> {
    let pool = server.pool().driver();
    match change {
        PoolChange::MinRoundTrip(time) => {
            pool.set_min_round_trip(time);
            return None;
        }
        PoolChange::Ready => pool.feed_within(pool::Input::Ready, follows),
        PoolChange::Clear { cause, interrupt, service } => {
            pool.feed_within(pool::Input::Clear { cause, interrupt, service }, follows);
        }
    }
    Some(Arc::clone(pool))
}

impl<R: Network> Effects<R> {
    /// All but the subscribers of pools.
    pub(super) fn run(&mut self) {
        self.timer.take().into_iter().for_each(Waker::wake);
        mem::take(&mut self.answered).iter().for_each(|waiter| waiter.wake());
        for pool in mem::take(&mut self.fed) {
            pool.run_pending_work();
            self.untold.push(pool);
        }
    }

    /// Tells the subscribers of pools what they were not told yet.
    pub(super) fn tell(&mut self) {
        mem::take(&mut self.untold).iter().for_each(PoolDriver::tell_pending);
    }

    /// Closes the pool of a server, and has its subscribers told at the end.
    pub(super) fn close_pool(&mut self, server: Arc<Server<R>>) {
        server.pool().driver().close_untold();
        self.tell_later(server.pool().driver());
        self.kept.push(server);
    }

    /// Keeps a server that was removed until the end.
    pub(super) fn keep(&mut self, server: Arc<Server<R>>) {
        self.kept.push(server);
    }

    /// Has the subscribers of a pool told at the end.
    pub(super) fn tell_later(&mut self, pool: &Arc<PoolDriver<R, MongoConnector<R>>>) {
        self.untold.push(Arc::clone(pool));
    }
}

impl<R: Network> Drop for Effects<R> {
    fn drop(&mut self) {
        self.run();
        self.tell();
    }
}

impl<R: Network> Default for Effects<R> {
    fn default() -> Self {
        Self {
            timer: None,
            answered: Vec::new(),
            fed: Vec::new(),
            untold: Vec::new(),
            kept: Vec::new(),
        }
    }
}

impl<R: Network> AsMut<Outbox<Action<Arc<Waiter>>>> for Locked<R> {
    fn as_mut(&mut self) -> &mut Outbox<Action<Arc<Waiter>>> {
        &mut self.work
    }
}

impl<R: Network> AsMut<Outbox<Event>> for Locked<R> {
    fn as_mut(&mut self) -> &mut Outbox<Event> {
        self.notifications.as_mut()
    }
}

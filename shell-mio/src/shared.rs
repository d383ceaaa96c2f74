//! One pool: the lock, the outbox, and what is done outside of the lock.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    Action, Event, Health, Input, Instant, PoolOptions, Purpose, Snapshot, WaiterId,
};

use crate::connector::Connector;
use crate::desk::{Delivery, Desk, Mio, Parked, Waiter, Wakers};
use crate::drainer::Drainer;
use crate::event::{PoolEvent, Subscriber};
use crate::event_loop::EventLoop;
use crate::failure::Watcher;
use crate::thread::LoopThread;
use crate::{establish, log};

pub(crate) struct Shared<K: Connector> {
    pub(crate) address: Arc<ServerAddress>,
    pub(crate) connector: K,
    /// The last connection of a closed pool is closed, too.
    pub(crate) emptied: Condvar,
    /// Whoever turns the event loop, unless the application does.
    pub(crate) thread: Mutex<Option<LoopThread>>,
    origin: std::time::Instant,
    subscribers: Vec<Subscriber>,
    pub(crate) watcher: Option<Watcher<K>>,
    desk: Mutex<Desk<K>>,
}

/// Who is told things.
pub(crate) struct Audience<K: Connector> {
    pub(crate) subscribers: Vec<Subscriber>,
    pub(crate) watcher: Option<Watcher<K>>,
}

impl<K: Connector> Shared<K> {
    pub(crate) fn new(
        address: Arc<ServerAddress>,
        connector: K,
        audience: Audience<K>,
        desk: Desk<K>,
    ) -> Arc<Self> {
        let Audience { subscribers, watcher } = audience;
        let shared = Arc::new(Self {
            address,
            connector,
            emptied: Condvar::new(),
            thread: Mutex::default(),
            origin: std::time::Instant::now(),
            subscribers,
            watcher,
            desk: Mutex::new(desk),
        });
        // The first event is waiting already: ConnectionPoolCreated.
        shared.drain();
        shared
    }

    /// Feeds one input, and does what it brings about.
    pub(crate) fn feed(self: &Arc<Self>, input: Input<Mio<K>>) {
        self.feed_under(self.lock(), input);
    }

    /// As [`feed`](Self::feed), for who has the lock already.
    pub(crate) fn feed_under(
        self: &Arc<Self>,
        mut desk: MutexGuard<'_, Desk<K>>,
        input: Input<Mio<K>>,
    ) {
        let wants_events = self.wants_events();
        let mut wakers = Wakers::new();
        let now = self.now_for(&desk, &input, wants_events);
        desk.handle(now, input, wants_events, &mut wakers);
        self.settle(desk, wakers);
    }

    /// Asks for a connection: what is there at once, or the place where the answer will be and the
    /// number of the request. `waiter` is asked for only then.
    pub(crate) fn request(
        self: &Arc<Self>,
        deadline: Option<std::time::Instant>,
        purpose: Purpose,
        waiter: impl FnOnce() -> Waiter,
    ) -> Result<Delivery<K>, (usize, WaiterId)> {
        let mut desk = self.lock();
        let wants_events = self.wants_events();
        let mut wakers = Wakers::new();
        desk.requests += 1;
        let id = WaiterId(desk.requests);
        let place = desk.parked.vacant_key();
        let deadline = deadline.map(|deadline| self.instant(deadline));
        let input = Input::CheckOutRequested { id, waiter: place, deadline, purpose };
        let now = self.now_for(&desk, &input, wants_events);
        let at_once = desk.handle_for(Some(place), now, input, wants_events, &mut wakers);
        let answer = match at_once {
            Some(delivery) => Ok(delivery),
            None => {
                let taken = desk.parked.insert(Parked::Waiting(waiter()));
                debug_assert_eq!(taken, place, "nobody else parks under the same lock");
                Err((place, id))
            }
        };
        self.settle(desk, wakers);
        answer
    }

    /// Whoever asked has gone. What was delivered meanwhile goes back as it came.
    pub(crate) fn abandon(self: &Arc<Self>, place: usize, id: WaiterId) {
        let mut desk = self.lock();
        match desk.parked.get(place) {
            // Forgotten, in a child process.
            None => return,
            Some(Parked::Waiting(_)) => {
                return self.feed_under(desk, Input::CheckOutCancelled { id });
            }
            Some(Parked::Answered(_)) => {}
        }
        if let Parked::Answered(Ok((id, conn))) = desk.parked.remove(place) {
            self.feed_under(desk, Input::CheckedIn { id, conn, health: Health::Healthy });
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Desk<K>> {
        // A panic under the lock is a broken contract; what the machine holds is whole all the same.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if nobody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Desk<K>>> {
        match self.desk.try_lock() {
            Ok(desk) => Some(desk),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().state.snapshot()
    }

    pub(crate) fn options(&self) -> PoolOptions {
        self.lock().state.options().clone()
    }

    /// When a request that is made now stops waiting for its turn, if it has no deadline of its own.
    pub(crate) fn end_of_wait(&self) -> Option<std::time::Instant> {
        let timeout = self.lock().state.options().wait_queue_timeout?;
        std::time::Instant::now().checked_add(timeout).filter(|_| !timeout.is_zero())
    }

    /// Nobody turns this loop any more: nothing can be opened.
    pub(crate) fn end_loop(&self, event_loop: &EventLoop) {
        {
            let mut desk = self.lock();
            // After a fork there may be another one.
            if desk.event_loop.is(event_loop) {
                desk.event_loop = EventLoop::over();
            }
        }
        event_loop.end();
    }

    /// A time of the machine's as one of the clock's; `None` if it is out of its reach.
    pub(crate) fn time_of(&self, instant: Instant) -> Option<std::time::Instant> {
        self.origin.checked_add(instant.saturating_since(Instant::ORIGIN))
    }

    /// The time now, as the machine counts it.
    pub(crate) fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }
}

impl<K: Connector> Shared<K> {
    fn instant(&self, time: std::time::Instant) -> Instant {
        Instant::ORIGIN + time.saturating_duration_since(self.origin)
    }

    fn wants_events(&self) -> bool {
        !self.subscribers.is_empty() || log::is_wanted()
    }

    /// The clock is read only when somebody will look at the time.
    fn now_for(&self, desk: &Desk<K>, input: &Input<Mio<K>>, wants_events: bool) -> Instant {
        let brings_time = matches!(
            input,
            Input::CheckOutRequested { deadline: Some(_), .. } | Input::SetOptions { .. }
        );
        if wants_events || brings_time || desk.state.needs_now() {
            self.now()
        } else {
            desk.state.now()
        }
    }

    /// Gives the lock back, wakes, and drains the outbox unless somebody does so already.
    pub(crate) fn settle(self: &Arc<Self>, mut desk: MutexGuard<'_, Desk<K>>, wakers: Wakers) {
        let is_earlier = Self::arm(&mut desk);
        let is_loop_concerned =
            is_earlier || wakers.iter().any(|waiter| matches!(waiter, Waiter::Loop));
        let event_loop = is_loop_concerned.then(|| desk.event_loop.clone());
        let is_left_to_others = desk.outbox.is_empty() || desk.is_drained;
        drop(desk);
        // Those who wait have their answers, and need not wait for subscribers.
        for waiter in wakers {
            match waiter {
                Waiter::Thread(parker) => parker.wake(),
                Waiter::Loop => {}
            }
        }
        if let Some(event_loop) = event_loop {
            event_loop.nudge();
        }
        if !is_left_to_others {
            self.drain();
        }
    }

    /// Says whether the timer has to fire earlier than it was told. Nothing is due where nothing
    /// depends on the time.
    fn arm(desk: &mut Desk<K>) -> bool {
        if !desk.state.needs_now() {
            return false;
        }
        let Some(due) = desk.state.next_deadline().map(|deadline| deadline.at) else {
            return false;
        };
        let is_earlier = desk.armed.is_none_or(|armed| due < armed);
        if is_earlier {
            desk.armed = Some(due);
        }
        is_earlier
    }

    /// Performs actions in their order and without the lock, until there are none. One thread does
    /// so at a time: actions that others bring about meanwhile are its to perform.
    fn drain(self: &Arc<Self>) {
        let mut desk = self.lock();
        if std::mem::replace(&mut desk.is_drained, true) {
            return;
        }
        let _drainer = Drainer::of(self);
        let mut batch = VecDeque::new();
        loop {
            std::mem::swap(&mut batch, &mut desk.outbox);
            if batch.is_empty() {
                // Keeps the larger buffer for next time.
                desk.is_drained = false;
                return;
            }
            drop(desk);
            for action in batch.drain(..) {
                self.perform(action);
            }
            desk = self.lock();
        }
    }

    fn perform(self: &Arc<Self>, action: Action<Mio<K>>) {
        match action {
            Action::StartEstablish { id, deadline, background } => {
                establish::start(self, id, deadline, background);
            }
            Action::AbortEstablish { id } => {
                let event_loop = self.lock().event_loop.clone();
                event_loop.stop(id.number());
            }
            Action::CloseSocket { id, conn } => {
                drop(conn);
                let mut desk = self.lock();
                desk.interrupts.remove(&id);
                if desk.interrupts.is_empty() {
                    self.emptied.notify_all();
                }
            }
            Action::Interrupt { id } => {
                let interrupt = self.lock().interrupts.get(&id).cloned();
                interrupt.into_iter().for_each(|interrupt| interrupt.happen());
            }
            Action::ReportHeldTooLong { id, held } => log::held_too_long(&self.address, id, held),
            Action::EmitEvent(event) => self.tell(event),
            Action::Deliver { .. } => unreachable!("deliveries are made under the lock"),
        }
    }

    fn tell(&self, event: Event<ConnectionError>) {
        log::event(&self.address, &event);
        let event = PoolEvent { address: Arc::clone(&self.address), event };
        for subscriber in &self.subscribers {
            // One that panics has said so; the others, and what comes next, are not to suffer.
            let _ = catch_unwind(AssertUnwindSafe(|| subscriber(&event)));
        }
    }
}

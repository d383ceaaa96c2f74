//! One pool: the lock, and what is done outside of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    Action, ConnId, Event, Health, Input, Instant, PoolOptions, Purpose, Snapshot, WaiterId,
};
use tokio::runtime::Handle;

use crate::connector::Connector;
use crate::desk::{Delivery, Desk, Parked, Tokio, Wakers};
use crate::event::{PoolEvent, Subscriber};
use crate::failure::Watcher;
use crate::interrupt::Interrupt;
use crate::sync::{Mutex, MutexGuard, Notify};
use crate::{establish, log, outbox};

pub(crate) struct Shared<K: Connector> {
    pub(crate) address: Arc<ServerAddress>,
    pub(crate) connector: K,
    /// Where connections are opened and the timer runs.
    pub(crate) runtime: Handle,
    /// The timer may have to fire earlier than it was told.
    pub(crate) rescheduled: Notify,
    /// The last connection of a closed pool came home.
    pub(crate) emptied: Notify,
    origin: tokio::time::Instant,
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
        runtime: Handle,
        desk: Desk<K>,
    ) -> Arc<Self> {
        let Audience { subscribers, watcher } = audience;
        let shared = Arc::new(Self {
            address,
            connector,
            runtime,
            rescheduled: Notify::new(),
            emptied: Notify::new(),
            origin: tokio::time::Instant::now(),
            subscribers,
            watcher,
            desk: Mutex::new(desk),
        });
        // The first event is waiting already: ConnectionPoolCreated.
        outbox::drain(&shared.desk, |action| shared.perform(action));
        shared
    }

    /// Feeds one input, and does what it brings about.
    pub(crate) fn feed(self: &Arc<Self>, input: Input<Tokio<K>>) {
        self.feed_under(self.lock(), input);
    }

    /// As [`feed`](Self::feed), for who has the lock already.
    pub(crate) fn feed_under(
        self: &Arc<Self>,
        mut desk: MutexGuard<'_, Desk<K>>,
        input: Input<Tokio<K>>,
    ) {
        let wants_events = self.wants_events();
        let mut wakers = Wakers::new();
        let now = self.now_for(&desk, &input, wants_events);
        desk.handle(now, input, wants_events, &mut wakers);
        self.settle(desk, wakers);
    }

    /// Asks for a connection: what is there at once, or the place where the answer will be and the
    /// number of the request.
    pub(crate) fn request(
        self: &Arc<Self>,
        deadline: Option<tokio::time::Instant>,
        purpose: Purpose,
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
                let taken = desk.parked.insert(Parked::Waiting(None));
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
        if matches!(desk.parked[place], Parked::Waiting(_)) {
            return self.feed_under(desk, Input::CheckOutCancelled { id });
        }
        if let Parked::Answered(Ok((id, conn))) = desk.parked.remove(place) {
            self.feed_under(desk, Input::CheckedIn { id, conn, health: Health::Healthy });
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Desk<K>> {
        outbox::lock(&self.desk)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().state.snapshot()
    }

    pub(crate) fn options(&self) -> PoolOptions {
        self.lock().state.options().clone()
    }

    /// A time of the machine's as one of tokio's; `None` if it is out of its reach.
    pub(crate) fn time_of(&self, instant: Instant) -> Option<tokio::time::Instant> {
        self.origin.checked_add(instant.saturating_since(Instant::ORIGIN))
    }

    /// The time now, as the machine counts it.
    pub(crate) fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }
}

impl<K: Connector> Shared<K> {
    fn instant(&self, time: tokio::time::Instant) -> Instant {
        Instant::ORIGIN + time.saturating_duration_since(self.origin)
    }

    fn wants_events(&self) -> bool {
        !self.subscribers.is_empty() || log::is_wanted()
    }

    /// The clock is read only when somebody will look at the time.
    fn now_for(&self, desk: &Desk<K>, input: &Input<Tokio<K>>, wants_events: bool) -> Instant {
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
        self.arm(&mut desk);
        // Those who wait have their answers, and need not wait for subscribers.
        let wake = || {
            for waker in wakers {
                // Of whatever runtime: one that panics must not keep the others asleep.
                let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
            }
        };
        outbox::release(&self.desk, desk, wake, |action| self.perform(action));
    }

    /// Has the timer fire earlier, if it has to. Nothing is due where nothing depends on the time.
    fn arm(&self, desk: &mut Desk<K>) {
        if !desk.state.needs_now() {
            return;
        }
        let Some(due) = desk.state.next_deadline().map(|deadline| deadline.at) else { return };
        if desk.armed.is_none_or(|armed| due < armed) {
            desk.armed = Some(due);
            self.rescheduled.notify_one();
        }
    }

    fn perform(self: &Arc<Self>, action: Action<Tokio<K>>) {
        match action {
            Action::StartEstablish { id, deadline, background } => {
                establish::start(self, id, deadline, background);
            }
            Action::AbortEstablish { id } => {
                let task = self.lock().opening.remove(&id).flatten();
                task.into_iter().for_each(|task| task.abort());
            }
            Action::CloseSocket { id, conn } => {
                // A connection that panics is gone all the same.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(conn)));
                self.forget(id);
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

    /// A socket is closed; perhaps it was the last one.
    fn forget(&self, id: ConnId) {
        let mut desk = self.lock();
        let interrupt = desk.interrupts.remove(&id);
        desk.closing -= 1;
        let is_empty = desk.is_empty();
        drop(desk);
        drop(interrupt);
        if is_empty {
            self.emptied.notify_waiters();
        }
    }

    /// A connection is open: whoever interrupts it finds it here.
    pub(crate) fn opened(desk: &mut Desk<K>, id: ConnId, interrupt: Arc<Interrupt>) {
        desk.opening.remove(&id);
        desk.interrupts.insert(id, interrupt);
    }
}

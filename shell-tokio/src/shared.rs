//! One pool: the lock, and what is done outside of it.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, TryLockError};
use std::task::Waker;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{Action, ConnId, Health, Input, Instant, PoolOptions, Purpose, Snapshot};
use cenote_shell::trace::{PanicGuard, Traces};
use tokio::runtime::Handle;

use crate::connector::Connector;
use crate::desk::{Asked, Delivery, Desk, Held, Parked, Place, Tokio};
use crate::event::{News, Subscribers};
use crate::failure::FailureHandler;
use crate::home::Home;
use crate::interrupt::Interrupt;
use crate::leak::{LeakCallback, LeakDetector};
use crate::sync::{Mutex, MutexGuard};
use crate::woken::{Woken, wake};
use crate::{error, establish, outbox};

pub(crate) struct Shared<K: Connector> {
    pub(crate) address: Arc<ServerAddress>,
    pub(crate) connector: K,
    pub(crate) home: Home,
    origin: tokio::time::Instant,
    subscribers: Subscribers,
    pub(crate) watcher: Option<FailureHandler>,
    pub(crate) holders: LeakDetector,
    pub(crate) traces: Traces,
    desk: Mutex<Desk<K>>,
}

/// When an input happens, and who will look.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    /// Something may be due later: without, nothing is due after the input either.
    is_timed: bool,
    pub(crate) wants_events: bool,
}

/// Who is told things.
pub(crate) struct Audience {
    pub(crate) subscribers: Subscribers,
    pub(crate) watcher: Option<FailureHandler>,
    pub(crate) overseer: Option<LeakCallback>,
    pub(crate) traces: Traces,
}

impl<K: Connector> Shared<K> {
    pub(crate) fn new(
        address: Arc<ServerAddress>,
        connector: K,
        audience: Audience,
        runtime: Handle,
        desk: Desk<K>,
    ) -> Arc<Self> {
        let Audience { subscribers, watcher, overseer, traces } = audience;
        let shared = Arc::new(Self {
            address,
            connector,
            home: Home::new(runtime),
            origin: tokio::time::Instant::now(),
            subscribers,
            watcher,
            holders: LeakDetector::new(desk.state.options(), overseer),
            traces,
            desk: Mutex::new(desk),
        });
        // The first event is waiting already: ConnectionPoolCreated.
        outbox::release(|| shared.lock(), shared.lock(), |news| shared.tell(news));
        shared
    }

    /// Feeds one input, and does what it brings about.
    pub(crate) fn feed(self: &Arc<Self>, input: Input<Tokio<K>>) {
        self.feed_under(self.lock(), input);
    }

    /// As [`feed`](Self::feed), for who has the lock already.
    pub(crate) fn feed_under(
        self: &Arc<Self>,
        desk: MutexGuard<'_, Desk<K>>,
        input: Input<Tokio<K>>,
    ) {
        let unwinding = PanicGuard::new(&**self);
        let mut desk = desk; // Given back before that is dropped.
        // A recording tells when all this was, too; what is served at once it tells as the pool saw it.
        let brings_time = matches!(input, Input::SetOptions { .. }) || desk.state.is_recording();
        let moment = self.moment(&desk, brings_time);
        let mut woken = Woken::default();
        desk.handle(moment.now, input, moment.wants_events, &mut woken);
        unwinding.defuse();
        self.settle(desk, moment, woken);
    }

    /// Asks for a connection: what is there at once, or the place where the answer will be, of
    /// which `waker` is told.
    pub(crate) fn request(
        self: &Arc<Self>,
        deadline: Option<tokio::time::Instant>,
        purpose: Purpose,
        waker: &Waker,
    ) -> Result<Delivery<K>, Place> {
        let unwinding = PanicGuard::new(&**self);
        let mut desk = self.lock();
        let moment = self.moment(&desk, deadline.is_some());
        let mut woken = Woken::default();
        let deadline = deadline.map(|deadline| self.instant(deadline));
        let asked = Asked { deadline, purpose };
        let answer = desk.request(moment.now, asked, moment.wants_events, (waker, &mut woken));
        unwinding.defuse();
        self.settle(desk, moment, woken);
        answer
    }

    /// Takes a connection back.
    pub(crate) fn check_in(
        self: &Arc<Self>,
        id: ConnId,
        conn: Box<Held<K>>,
        health: Health<ConnectionError>,
    ) {
        let unwinding = PanicGuard::new(&**self);
        let mut desk = self.lock();
        let moment = self.moment(&desk, false);
        let mut woken = Woken::default();
        let input = Input::CheckedIn { id, conn, health };
        desk.handle(moment.now, input, moment.wants_events, &mut woken);
        unwinding.defuse();
        self.settle(desk, moment, woken);
    }

    /// What the connector finds fault with. If it panics, the connection is not to be trusted, and
    /// comes back all the same.
    pub(crate) fn fault(&self, connection: &K::Connection) -> Option<ConnectionError> {
        error::fault(|| self.connector.fault(connection))
    }

    /// Whoever asked has gone. What was delivered meanwhile goes back as it came.
    pub(crate) fn abandon(self: &Arc<Self>, place: Place) {
        let mut desk = self.lock();
        if let Parked::Waiting(waker) = &mut desk.parked[place.index] {
            // Dropped without the lock, for it may be the last that holds a task.
            let _waker = mem::replace(waker, Waker::noop().clone());
            return self.cancel(desk, place);
        }
        if let Parked::Answered(Ok((id, conn))) = desk.parked.remove(place.index) {
            self.feed_under(desk, Input::CheckedIn { id, conn, health: Health::Healthy });
        }
    }

    fn cancel(self: &Arc<Self>, desk: MutexGuard<'_, Desk<K>>, place: Place) {
        let unwinding = PanicGuard::new(&**self);
        let mut desk = desk; // Given back before that is dropped.
        let moment = self.moment(&desk, desk.state.is_recording());
        let mut woken = Woken::default();
        let input = Input::CheckOutCancelled { id: place.id };
        desk.handle(moment.now, input, moment.wants_events, &mut woken);
        // If its time was over already, there is an answer, for which nobody comes.
        drop(desk.parked.try_remove(place.index));
        unwinding.defuse();
        self.settle(desk, moment, woken);
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Desk<K>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if nobody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Desk<K>>> {
        match self.desk.try_lock() {
            Ok(desk) => Some(desk),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Nothing can be opened any more, and nobody tells that a time is over: everybody is told that
    /// the pool is closed instead of waiting for either. Not in a child process, where it says nothing
    /// that a task of the parent is dropped.
    pub(crate) fn runtime_ended(self: &Arc<Self>) {
        if self.home.is_here() {
            self.feed(Input::Close);
        }
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

    /// The time at which the pool was made: no time of this pool is before it.
    pub(crate) fn time_zero(&self) -> tokio::time::Instant {
        self.origin
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

    /// The clock is read only when somebody will look at the time: the machine, whoever hears of
    /// events, or whoever reads a whole trace.
    #[inline(always)]
    pub(crate) fn moment(&self, desk: &Desk<K>, brings_time: bool) -> Moment {
        let wants_events = self.subscribers.want_events();
        let is_timed = brings_time || desk.state.needs_now();
        let is_seen = is_timed || wants_events || desk.state.is_journaled();
        let now = if is_seen { self.now() } else { desk.state.now() };
        Moment { now, is_timed, wants_events }
    }

    /// Gives the lock back, wakes, does what there is to be done and tells what there is to be told,
    /// unless somebody does so already. Whoever is told may take his time, so that comes last.
    #[inline(always)]
    pub(crate) fn settle(
        self: &Arc<Self>,
        mut desk: MutexGuard<'_, Desk<K>>,
        moment: Moment,
        woken: Woken,
    ) {
        if moment.is_timed {
            self.arm(&mut desk);
        }
        if desk.state.wants_writer(desk.noted.has_timed_out) {
            let has_timed_out = mem::take(&mut desk.noted.has_timed_out);
            desk.state.call_writer(has_timed_out, &self.traces);
        }
        // Those who wait have their answers, and need not wait for subscribers.
        let (work, news) = (desk.outbox.claim(), desk.news.claim());
        drop(desk);
        if !woken.is_empty() {
            woken.wake(wake);
        }
        if let Some(work) = work {
            drop(outbox::drain(|| self.lock(), work, |action| self.act(action)));
        }
        if let Some(news) = news {
            Self::ring(outbox::drain(|| self.lock(), news, |news| self.tell(news)));
        }
    }

    /// Has the timer fire earlier, if it has to.
    #[inline(never)]
    fn arm(&self, desk: &mut Desk<K>) {
        let Some(due) = desk.state.next_deadline().map(|deadline| deadline.at) else { return };
        if desk.armed.is_none_or(|armed| due < armed) {
            desk.armed = Some(due);
            desk.alarm.notify_one();
        }
    }

    /// What is not part of every check-out, apart from what is.
    #[inline(never)]
    fn act(self: &Arc<Self>, action: Action<Tokio<K>>) {
        match action {
            Action::StartEstablish { id, deadline, background } => {
                establish::start(self, id, deadline, background);
            }
            Action::AbortEstablish { id } => {
                let stop = self.lock().opening.get_mut(&id).and_then(|task| {
                    task.is_given_up = true;
                    task.stop.take()
                });
                stop.into_iter().for_each(|task| task.abort());
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
            Action::EmitEvent(_) | Action::ReportLeak { .. } => {
                unreachable!("told, and not done")
            }
            Action::Deliver { .. } => unreachable!("deliveries are made under the lock"),
        }
    }

    fn tell(&self, news: News) {
        match news {
            News::Event(event) => self.subscribers.tell(&self.address, event),
            News::LeakReport { id, held } => self.holders.report(&self.address, id, held),
        }
    }

    /// A socket is closed; perhaps it was the last one.
    fn forget(&self, id: ConnId) {
        let mut desk = self.lock();
        let interrupt = desk.interrupts.remove(&id);
        // A reset after a fork may have forgotten that it was to be closed.
        desk.noted.closing = desk.noted.closing.saturating_sub(1);
        Self::ring(desk);
        drop(interrupt);
    }

    /// Gives the lock back; those who wait for that hear that nothing is left of a closed pool.
    fn ring(desk: MutexGuard<'_, Desk<K>>) {
        let emptied = desk.is_empty().then(|| Arc::clone(&desk.emptied));
        drop(desk);
        if let Some(emptied) = emptied {
            emptied.notify_waiters();
        }
    }

    /// A connection is open: whoever interrupts it finds it here.
    pub(crate) fn opened(&self, id: ConnId, interrupt: Arc<Interrupt>) {
        self.lock().interrupts.insert(id, interrupt);
    }

    /// A task that opened a connection is over; perhaps a closed pool waited for that.
    pub(crate) fn opening_ended(&self, id: ConnId) {
        let mut desk = self.lock();
        desk.opening.remove(&id);
        Self::ring(desk);
    }
}

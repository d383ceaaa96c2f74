//! One pool: the lock, and what is done outside of it.

use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    Action, ConnId, Health, Input, Instant, PoolOptions, Purpose, Snapshot, Status,
};
use cenote_shell::trace::{PanicGuard, Traces};
use mio::Poll;

use crate::connector::Connector;
use crate::desk::{Asked, Delivery, Desk, Held, Mio, Parked, Place};
use crate::drainer::Drainer;
use crate::event::{News, Subscribers};
use crate::event_loop::EventLoop;
use crate::failure::FailureHandler;
use crate::interrupt::Interrupt;
use crate::leak::{LeakCallback, LeakDetector};
use crate::thread::LoopThread;
use crate::timer::{Due, TIMER, Timed};
use crate::woken::{Waiter, Woken, wake};
use crate::{error, establish, outbox};

pub(crate) struct Shared<K: Connector> {
    pub(crate) address: Arc<ServerAddress>,
    pub(crate) connector: K,
    /// The last connection of a closed pool is closed, too.
    pub(crate) emptied: Condvar,
    /// Whoever turns the event loop, if that is for this pool alone.
    pub(crate) thread: LoopThread,
    /// The process that the pool lives in.
    process: AtomicU32,
    origin: std::time::Instant,
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
    pub(crate) is_timed: bool,
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
        desk: Desk<K>,
    ) -> Arc<Self> {
        let Audience { subscribers, watcher, overseer, traces } = audience;
        let shared = Arc::new(Self {
            address,
            connector,
            emptied: Condvar::new(),
            thread: LoopThread::default(),
            process: AtomicU32::new(std::process::id()),
            origin: std::time::Instant::now(),
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
    pub(crate) fn feed(self: &Arc<Self>, input: Input<Mio<K>>) {
        self.feed_under(self.lock(), input);
    }

    /// As [`feed`](Self::feed), for who has the lock already.
    pub(crate) fn feed_under(
        self: &Arc<Self>,
        desk: MutexGuard<'_, Desk<K>>,
        input: Input<Mio<K>>,
    ) {
        let unwinding = PanicGuard::new(&**self);
        let mut desk = desk; // Given back before that is dropped.
        // A recording tells when all this was, too; what is served at once it tells as the pool saw it.
        let brings_time = matches!(input, Input::SetOptions { .. }) || desk.state.is_recording();
        let moment = self.moment(&desk, brings_time);
        let mut woken = Woken::default();
        desk.handle(moment.now, input, moment.wants_events, &mut woken);
        unwinding.defuse();
        self.settle(desk, moment.is_timed, woken);
    }

    /// Asks for a connection: what is there at once, or the place where the answer will be, of
    /// which `waiter` is told. It is asked for only then.
    pub(crate) fn request(
        self: &Arc<Self>,
        deadline: Option<std::time::Instant>,
        purpose: Purpose,
        waiter: impl FnOnce() -> Waiter,
    ) -> Result<Delivery<K>, Place> {
        let unwinding = PanicGuard::new(&**self);
        let mut desk = self.lock();
        let moment = self.moment(&desk, deadline.is_some());
        let mut woken = Woken::default();
        let deadline = deadline.map(|deadline| self.instant(deadline));
        let asked = Asked { deadline, purpose };
        let answer = desk.request(moment.now, asked, moment.wants_events, (waiter, &mut woken));
        unwinding.defuse();
        self.settle(desk, moment.is_timed, woken);
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
        self.settle(desk, moment.is_timed, woken);
    }

    /// Whoever asked has gone. What was delivered meanwhile goes back as it came.
    pub(crate) fn abandon(self: &Arc<Self>, place: Place) {
        let mut desk = self.lock();
        match desk.parked.get(place.index) {
            // Forgotten, in a child process.
            None => return,
            Some(Parked::Waiting(_)) => return self.cancel(desk, place),
            Some(Parked::Answered(_)) => {}
        }
        // Under the same lock, for the place may be another one's as soon as it is given back.
        desk.answered.retain(|answered| *answered != place.index);
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
        if desk.parked.try_remove(place.index).is_some() {
            desk.answered.retain(|answered| *answered != place.index);
        }
        unwinding.defuse();
        self.settle(desk, moment.is_timed, woken);
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

    /// Whether this is a child of the process that the pool lives in. Asks the operating system.
    pub(crate) fn is_foreign(&self) -> bool {
        self.process.load(Ordering::Relaxed) != std::process::id()
    }

    /// The pool lives in this process from now on.
    pub(crate) fn adopt(&self) {
        self.process.store(std::process::id(), Ordering::Relaxed);
    }

    /// Has a thread turn the loop until the pool is closed and nothing is being opened any more.
    pub(crate) fn start_thread(
        self: &Arc<Self>,
        event_loop: EventLoop,
        poll: Poll,
    ) -> io::Result<()> {
        let shared = Arc::clone(self);
        self.thread.start(event_loop, poll, move |event_loop| shared.end_loop(event_loop))
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

    /// The time at which the pool was made: no time of this pool is before it.
    pub(crate) fn time_zero(&self) -> std::time::Instant {
        self.origin
    }

    /// Why a connection must not be used again. One that nobody can judge must not.
    pub(crate) fn fault(&self, connection: &K::Connection) -> Option<ConnectionError> {
        error::fault(|| self.connector.fault(connection))
    }

    /// The time now, as the machine counts it.
    pub(crate) fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }
}

impl<K: Connector> Timed for Shared<K> {
    fn due(&self) -> Due {
        let mut desk = self.lock();
        if desk.state.snapshot().status == Status::Closed {
            return Due::Never;
        }
        if desk.armed.is_some_and(|armed| armed <= self.now()) {
            // What is due after this is set anew by the input itself.
            desk.armed = None;
            return Due::Now;
        }
        Due::At(desk.armed.and_then(|armed| self.time_of(armed)))
    }

    fn time_is_up(self: &Arc<Self>) {
        self.feed(Input::Timer);
    }
}

impl<K: Connector> Shared<K> {
    fn instant(&self, time: std::time::Instant) -> Instant {
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
        is_timed: bool,
        woken: Woken,
    ) {
        let sleeper = if is_timed { Self::arm(&mut desk) } else { None };
        if desk.state.wants_writer(desk.has_timed_out) {
            let has_timed_out = mem::take(&mut desk.has_timed_out);
            desk.state.call_writer(has_timed_out, &self.traces);
        }
        let (work, news) = (desk.outbox.claim(), desk.news.claim());
        drop(desk);
        if woken.is_empty() && sleeper.is_none() {
            // Almost always so, and worth not even looking whether there is something to drop.
            mem::forget((woken, sleeper));
        } else {
            Self::wake(woken, sleeper.as_ref());
        }
        if let Some(work) = work {
            drop(outbox::drain(|| self.lock(), work, |action| self.act(action)));
        }
        if let Some(news) = news {
            self.ring(&outbox::drain(|| self.lock(), news, |news| self.tell(news)));
        }
    }

    /// Those who wait have their answers, and are woken outside of the lock.
    #[inline(never)]
    fn wake(woken: Woken, sleeper: Option<&EventLoop>) {
        woken.wake(wake);
        sleeper.into_iter().for_each(|event_loop| event_loop.call(TIMER));
    }

    /// Gives the loop, if its timer has to fire earlier than it was told.
    #[inline(never)]
    fn arm(desk: &mut Desk<K>) -> Option<EventLoop> {
        let due = desk.state.next_deadline()?.at;
        if desk.armed.is_some_and(|armed| armed <= due) {
            return None;
        }
        desk.armed = Some(due);
        Some(desk.event_loop.clone())
    }

    /// What is not part of every check-out, apart from what is.
    #[inline(never)]
    fn act(self: &Arc<Self>, action: Action<Mio<K>>) {
        let _drainer = Drainer::of(self);
        match action {
            Action::StartEstablish { id, deadline, background } => {
                establish::start(self, id, deadline, background);
            }
            Action::AbortEstablish { id } => {
                let event_loop = self.lock().event_loop.clone();
                event_loop.stop(id.number());
            }
            Action::CloseSocket { id, conn } => {
                // A connection that panics is gone all the same.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(conn)));
                let mut desk = self.lock();
                let interrupt = desk.interrupts.remove(&id);
                self.ring(&desk);
                drop(desk);
                drop(interrupt);
            }
            Action::Interrupt { id } => {
                let interrupt = self.lock().interrupts.get(&id).cloned();
                // What is shut down in a child is shut down for the parent.
                let break_off =
                    if self.is_foreign() { Interrupt::renounce } else { Interrupt::happen };
                interrupt.as_deref().into_iter().for_each(break_off);
            }
            Action::EmitEvent(_) | Action::ReportLeak { .. } => {
                unreachable!("told, and not done")
            }
            Action::Deliver { .. } => unreachable!("deliveries are made under the lock"),
        }
    }

    /// Whoever closes the pool hears that there is nothing left to wait for.
    fn ring(&self, desk: &Desk<K>) {
        if desk.interrupts.is_empty() && desk.news.is_idle() {
            self.emptied.notify_all();
        }
    }

    fn tell(self: &Arc<Self>, news: News) {
        let _drainer = Drainer::of(self);
        match news {
            News::Event(event) => self.subscribers.tell(&self.address, event),
            News::LeakReport { id, held } => self.holders.report(&self.address, id, held),
        }
    }
}

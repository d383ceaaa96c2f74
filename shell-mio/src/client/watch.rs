//! One server that is watched: the monitor's machine under its lock, and what is done outside of it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::address::ServerAddress;
use cenote_core::client::{Candidate, ServerEvent};
use cenote_core::connect::EstablishOptions;
use cenote_core::monitor::{
    Action, Event, Input, InvalidMonitorOptions, Monitor, MonitorOptions, ServerDescription,
};
use cenote_core::pool::{self, Instant};
use cenote_core::sdam::{self, Verdict};

use super::news::News;
use super::talk::Talks;
use crate::connection::Mongo;
use crate::drainer::Drainer;
use crate::event_loop::EventLoop;
use crate::failure::Failure;
use crate::log::topology as log;
use crate::outbox::{self, Outbox};
use crate::pool::Pool;
use crate::shared::Fed;
use crate::timer::{self, Due, TIMER, Timed};

/// Somebody who is told everything.
pub(super) type ServerSubscriber = Box<dyn Fn(&ServerEvent) + Send + Sync>;

pub(crate) struct Watch {
    pub(super) connector: Mongo,
    pub(super) talks: Talks,
    pool: Pool,
    subscribers: Arc<Vec<ServerSubscriber>>,
    /// Of the client: whoever waits for a server looks again.
    news: Arc<News>,
    origin: std::time::Instant,
    is_direct: bool,
    desk: Mutex<Desk>,
}

/// What is under the lock. What becomes of the pool is fed to it under this lock, too, so that
/// description and pool change at once (SD-04, SD-05): this lock comes before the pool's.
struct Desk {
    monitor: Monitor,
    outbox: Outbox<Action>,
    /// When the timer rings, as it was told.
    armed: Option<Instant>,
    /// Since when the server has been what it is.
    since: Instant,
    is_closed: bool,
}

/// What one input has brought about for others than the server.
#[derive(Default)]
struct Consequences {
    fed: Vec<Fed<Mongo>>,
    is_news: bool,
    /// The timer has to ring earlier than it was told, or never again.
    is_timer_called: bool,
}

impl Watch {
    /// Nothing is done yet: see [`begin`](Self::begin).
    pub(super) fn start(
        (connector, pool): (Mongo, Pool),
        (options, establish): (MonitorOptions, Arc<EstablishOptions>),
        (subscribers, news): (Arc<Vec<ServerSubscriber>>, Arc<News>),
        (event_loop, origin): (EventLoop, std::time::Instant),
    ) -> Result<Arc<Self>, InvalidMonitorOptions> {
        let is_direct = options.is_direct;
        let since = Instant::ORIGIN + origin.elapsed();
        let mut actions = VecDeque::new();
        let monitor = Monitor::new(since, options, establish, &mut actions)?;
        let outbox = Outbox::new(actions);
        let desk = Mutex::new(Desk { monitor, outbox, armed: None, since, is_closed: false });
        let talks = Talks::new(event_loop);
        Ok(Arc::new(Self { connector, talks, pool, subscribers, news, origin, is_direct, desk }))
    }

    /// Begins with the first check.
    pub(super) fn begin(self: &Arc<Self>) {
        timer::start(self, &self.talks.event_loop());
        outbox::release(|| self.lock(), self.lock(), |action| self.perform(action));
    }

    /// Feeds one input, and does what it brings about.
    pub(super) fn feed(self: &Arc<Self>, input: Input) {
        let mut desk = self.lock();
        let consequences = self.handle(&mut desk, input);
        self.release(desk, consequences);
    }

    /// SDAM's say about a connection of the pool: description, monitor and pool at once.
    pub(super) fn application_failed(self: &Arc<Self>, failure: &Failure<'_, Mongo>) {
        let mut desk = self.lock();
        let context = failure.context(desk.monitor.topology_version());
        let verdict = sdam::verdict(&context, failure.error());
        if verdict == Verdict::default() {
            return;
        }
        let input = Input::ApplicationFailed { error: failure.error().clone(), verdict };
        let mut consequences = self.handle(&mut desk, input);
        consequences.fed.extend(failure.clear_within(verdict.pool));
        self.release(desk, consequences);
    }

    pub(super) fn request_check(self: &Arc<Self>) {
        self.feed(Input::RequestCheck);
    }

    pub(super) fn description(&self) -> Arc<ServerDescription> {
        Arc::clone(self.lock().monitor.description())
    }

    pub(super) fn candidate(&self) -> Candidate {
        let desk = self.lock();
        let kind = desk.monitor.description().kind();
        Candidate { kind, since: desk.since, is_direct: self.is_direct }
    }

    /// Ends all that was begun: sockets close in the loop's next turn.
    pub(super) fn close(self: &Arc<Self>) {
        self.lock().is_closed = true;
        self.feed(Input::Close);
        self.talks.event_loop().call(TIMER);
    }

    /// Nobody turns the loop any more.
    pub(super) fn end_loop(&self) {
        self.talks.end_loop();
    }

    pub(super) fn address(&self) -> &ServerAddress {
        self.pool.address()
    }
}

impl Watch {
    fn handle(self: &Arc<Self>, desk: &mut Desk, input: Input) -> Consequences {
        let now = self.now();
        let before = desk.monitor.description().kind();
        let Desk { monitor, outbox, .. } = desk;
        let mut consequences = Consequences::default();
        let mut sink = |action| self.sort(action, outbox, &mut consequences);
        if let Err(misuse) = monitor.handle(now, input, &mut sink) {
            unreachable!("a contract between shell and machine is broken: {misuse}");
        }
        if monitor.description().kind() != before {
            desk.since = now;
        }
        consequences.is_timer_called = desk.is_due_earlier();
        consequences
    }

    /// What concerns the pool is done at once, the rest when the lock is given back.
    fn sort(&self, action: Action, outbox: &mut Outbox<Action>, consequences: &mut Consequences) {
        let pool = self.pool.shared();
        match action {
            Action::MarkReady => consequences.fed.push(pool.feed_within(pool::Input::Ready)),
            Action::ClearPool { cause, interrupt } => {
                let input = pool::Input::Clear { cause, interrupt, service: None };
                consequences.fed.push(pool.feed_within(input));
            }
            Action::EmitEvent(ref event) => {
                consequences.is_news |= event.is_news();
                outbox.push(action);
            }
            Action::Open { .. } | Action::Send { .. } | Action::Close { .. } => {
                outbox.push(action);
            }
        }
    }

    /// The server's own story first, then what it means for the pool, then for who waits.
    fn release(
        self: &Arc<Self>,
        desk: MutexGuard<'_, Desk>,
        Consequences { fed, is_news, is_timer_called }: Consequences,
    ) {
        outbox::release(|| self.lock(), desk, |action| self.perform(action));
        fed.into_iter().for_each(Fed::settle);
        if is_news {
            self.news.tell();
        }
        if is_timer_called {
            self.talks.event_loop().call(TIMER);
        }
    }

    fn perform(self: &Arc<Self>, action: Action) {
        match action {
            Action::Open { socket, .. } => self.talks.open(self, socket),
            Action::Send { socket, command, flags } => self.talks.send(socket, command, flags),
            Action::Close { socket } => self.talks.close(socket),
            Action::EmitEvent(event) => self.tell(event),
            Action::MarkReady | Action::ClearPool { .. } => {
                unreachable!("done under the lock")
            }
        }
    }

    fn tell(self: &Arc<Self>, event: Event) {
        let _drainer = Drainer::of(self);
        let address = &self.pool.shared().address;
        if log::is_wanted() {
            // What collects them may panic, too.
            let _ = catch_unwind(AssertUnwindSafe(|| log::event(address, &event)));
        }
        if self.subscribers.is_empty() {
            return;
        }
        let event = ServerEvent { address: Arc::clone(address), event };
        for subscriber in self.subscribers.iter() {
            // One that panics has said so; the others, and what comes next, are not to suffer.
            let _ = catch_unwind(AssertUnwindSafe(|| subscriber(&event)));
        }
    }

    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    /// `None` is out of the clock's reach, which is never.
    fn time_of(&self, instant: Instant) -> Option<std::time::Instant> {
        self.origin.checked_add(instant.saturating_since(Instant::ORIGIN))
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timed for Watch {
    fn due(&self) -> Due {
        let mut desk = self.lock();
        if desk.is_closed {
            return Due::Never;
        }
        desk.armed = desk.monitor.next_deadline().map(|deadline| deadline.at);
        match desk.armed {
            Some(armed) if armed <= self.now() => Due::Now,
            armed => Due::At(armed.and_then(|armed| self.time_of(armed))),
        }
    }

    fn time_is_up(self: &Arc<Self>) {
        self.feed(Input::Timer);
    }
}

impl Desk {
    /// Whether the timer has to be told; then it counts as told.
    fn is_due_earlier(&mut self) -> bool {
        let Some(due) = self.monitor.next_deadline().map(|deadline| deadline.at) else {
            return false;
        };
        let is_earlier = self.armed.is_none_or(|armed| due < armed);
        if is_earlier {
            self.armed = Some(due);
        }
        is_earlier
    }
}

impl AsMut<Outbox<Action>> for Desk {
    fn as_mut(&mut self) -> &mut Outbox<Action> {
        &mut self.outbox
    }
}

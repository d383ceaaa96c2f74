//! One server that is watched: the monitor's machine under its lock, and what is done outside of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::address::ServerAddress;
use cenote_core::client::Candidate;
use cenote_core::connect::EstablishOptions;
use cenote_core::monitor::{
    Action, Input, InvalidMonitorOptions, MonitorOptions, ServerDescription,
};
use cenote_core::pool::{self, Instant};
use cenote_core::sdam::{self, Verdict};
use cenote_shell::watch::{Outcome, PoolChange, ServerSubscribers, WatchDesk};

use super::news::News;
use super::talk::Talks;
use crate::connection::Mongo;
use crate::drainer::Drainer;
use crate::event_loop::EventLoop;
use crate::failure::Failure;
use crate::fed::Fed;
use crate::outbox;
use crate::pool::Pool;
use crate::timer::{self, Due, TIMER, Timed};

pub(crate) struct Watch {
    pub(super) connector: Mongo,
    pub(super) talks: Talks,
    pool: Pool,
    subscribers: Arc<ServerSubscribers>,
    /// Of the client: whoever waits for a server looks again.
    news: Arc<News>,
    origin: std::time::Instant,
    desk: Mutex<WatchDesk>,
}

/// What one input has brought about for others than the server.
#[derive(Default)]
struct Consequences {
    fed: Vec<Fed<Mongo>>,
    outcome: Outcome,
}

impl Watch {
    /// Nothing is done yet: see [`begin`](Self::begin).
    pub(super) fn start(
        (connector, pool): (Mongo, Pool),
        (options, establish): (MonitorOptions, Arc<EstablishOptions>),
        (subscribers, news): (Arc<ServerSubscribers>, Arc<News>),
        (event_loop, origin): (EventLoop, std::time::Instant),
    ) -> Result<Arc<Self>, InvalidMonitorOptions> {
        let now = Instant::ORIGIN + origin.elapsed();
        let desk = Mutex::new(WatchDesk::new(now, options, establish)?);
        let talks = Talks::new(event_loop);
        Ok(Arc::new(Self { connector, talks, pool, subscribers, news, origin, desk }))
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

    pub(super) fn request_check(self: &Arc<Self>) {
        self.feed(Input::RequestCheck);
    }

    pub(super) fn description(&self) -> Arc<ServerDescription> {
        Arc::clone(self.lock().description())
    }

    pub(super) fn candidate(&self) -> Candidate {
        self.lock().candidate()
    }

    /// Ends all that was begun: sockets close in the loop's next turn.
    pub(super) fn close(self: &Arc<Self>) {
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
    fn handle(&self, desk: &mut WatchDesk, input: Input) -> Consequences {
        let mut fed = Vec::new();
        let outcome = desk.handle(self.now(), input, |change| {
            fed.push(self.pool.shared().feed_within(match change {
                PoolChange::Ready => pool::Input::Ready,
                PoolChange::Clear { cause, interrupt } => {
                    pool::Input::Clear { cause, interrupt, service: None }
                }
            }));
        });
        Consequences { fed, outcome }
    }

    /// The server's own story first, then what it means for the pool, then for who waits.
    fn release(
        self: &Arc<Self>,
        desk: MutexGuard<'_, WatchDesk>,
        Consequences { fed, outcome }: Consequences,
    ) {
        outbox::release(|| self.lock(), desk, |action| self.perform(action));
        fed.into_iter().for_each(Fed::settle);
        if outcome.is_news {
            self.news.tell();
        }
        if outcome.is_due_earlier {
            self.talks.event_loop().call(TIMER);
        }
    }

    fn perform(self: &Arc<Self>, action: Action) {
        match action {
            Action::Open { socket, .. } => self.talks.open(self, socket),
            Action::Send { socket, command, flags } => self.talks.send(socket, command, flags),
            Action::Close { socket } => self.talks.close(socket),
            Action::EmitEvent(event) => {
                let _drainer = Drainer::of(self);
                self.subscribers.tell(&self.pool.shared().address, event);
            }
            Action::MarkReady | Action::ClearPool { .. } => {
                unreachable!("done under the lock")
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    /// `None` is out of the clock's reach, which is never.
    fn time_of(&self, instant: Instant) -> Option<std::time::Instant> {
        self.origin.checked_add(instant.saturating_since(Instant::ORIGIN))
    }

    fn lock(&self) -> MutexGuard<'_, WatchDesk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timed for Watch {
    fn due(&self) -> Due {
        let mut desk = self.lock();
        if desk.is_closed() {
            return Due::Never;
        }
        match desk.arm() {
            Some(armed) if armed <= self.now() => Due::Now,
            armed => Due::At(armed.and_then(|armed| self.time_of(armed))),
        }
    }

    fn time_is_up(self: &Arc<Self>) {
        self.feed(Input::Timer);
    }
}

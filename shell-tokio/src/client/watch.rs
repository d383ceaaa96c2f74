//! One server that is watched: the monitor's machine under its lock, and what is done outside of it.

use std::sync::{Arc, PoisonError};

use cenote_core::client::Candidate;
use cenote_core::connect::EstablishOptions;
use cenote_core::monitor::{
    Action, Input, InvalidMonitorOptions, MonitorOptions, ServerDescription,
};
use cenote_core::pool::{self, Instant};
use cenote_core::sdam::{self, Verdict};
use cenote_shell::watch::{Outcome, PoolChange, ServerSubscribers, WatchDesk};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::talk::Talks;
use crate::connection::Mongo;
use crate::failure::Failure;
use crate::outbox;
use crate::pool::Pool;
use crate::shared::Fed;
use crate::sync::{Mutex, MutexGuard};

pub(crate) struct Watch {
    pub(super) connector: Mongo,
    pub(super) runtime: Handle,
    pub(super) talks: Talks,
    pool: Pool,
    subscribers: Arc<ServerSubscribers>,
    /// Of the client: whoever waits for a server looks again.
    news: Arc<Notify>,
    origin: tokio::time::Instant,
    /// The timer may have to fire earlier than it was told.
    alarm: Notify,
    timer: Mutex<Option<AbortHandle>>,
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
        (subscribers, news): (Arc<ServerSubscribers>, Arc<Notify>),
        origin: tokio::time::Instant,
    ) -> Result<Arc<Self>, InvalidMonitorOptions> {
        let desk = WatchDesk::new(Instant::ORIGIN + origin.elapsed(), options, establish)?;
        Ok(Arc::new(Self {
            connector,
            runtime: Handle::current(),
            talks: Talks::default(),
            pool,
            subscribers,
            news,
            origin,
            alarm: Notify::new(),
            timer: Mutex::new(None),
            desk: Mutex::new(desk),
        }))
    }

    /// Begins with the first check.
    pub(super) fn begin(self: &Arc<Self>) {
        let timer = self.runtime.spawn(Arc::clone(self).keep_time()).abort_handle();
        *self.timer() = Some(timer);
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

    /// Ends all that was begun: sockets close as soon as their tasks are stopped.
    pub(super) fn close(self: &Arc<Self>) {
        self.feed(Input::Close);
        let timer = self.timer().take();
        timer.into_iter().for_each(|timer| timer.abort());
    }

    /// Until no socket is left.
    pub(super) async fn ended(&self) {
        self.talks.ended().await;
    }
}

impl Watch {
    fn handle(&self, desk: &mut WatchDesk, input: Input) -> Consequences {
        let now = Instant::ORIGIN + self.origin.elapsed();
        let mut fed = Vec::new();
        let outcome = desk.handle(now, input, |change| {
            fed.push(self.pool.shared().feed_within(match change {
                PoolChange::Ready => pool::Input::Ready,
                PoolChange::Clear { cause, interrupt } => {
                    pool::Input::Clear { cause, interrupt, service: None }
                }
            }));
        });
        if outcome.is_due_earlier {
            self.alarm.notify_one();
        }
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
            self.news.notify_waiters();
        }
    }

    fn perform(self: &Arc<Self>, action: Action) {
        match action {
            Action::Open { socket, .. } => self.talks.open(self, socket),
            Action::Send { socket, command, flags } => self.talks.send(socket, command, flags),
            Action::Close { socket } => self.talks.close(socket),
            Action::EmitEvent(event) => {
                self.subscribers.tell(&self.pool.shared().address, event);
            }
            Action::MarkReady | Action::ClearPool { .. } => {
                unreachable!("done under the lock")
            }
        }
    }

    /// Feeds `Timer` whenever the machine asked for it.
    async fn keep_time(self: Arc<Self>) {
        loop {
            let due = self.lock().arm();
            let due = due.and_then(|due| self.time_of(due));
            let rescheduled = self.alarm.notified();
            let Some(due) = due else {
                rescheduled.await;
                continue;
            };
            tokio::select! {
                biased;
                () = rescheduled => {}
                () = tokio::time::sleep_until(due) => self.feed(Input::Timer),
            }
        }
    }

    /// `None` is out of tokio's reach, which is never.
    fn time_of(&self, instant: Instant) -> Option<tokio::time::Instant> {
        self.origin.checked_add(instant.saturating_since(Instant::ORIGIN))
    }

    fn lock(&self) -> MutexGuard<'_, WatchDesk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn address(&self) -> &cenote_core::address::ServerAddress {
        self.pool.address()
    }

    fn timer(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

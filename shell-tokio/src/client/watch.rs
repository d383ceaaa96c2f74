//! What a server is watched with: tasks of the runtime, and its timer. The rest is
//! [`cenote_shell::monitor`].

use std::sync::{Arc, PoisonError};

use cenote_core::connect::{Command, EstablishOptions};
use cenote_core::monitor::{Event, Input, InvalidMonitorOptions, MonitorOptions, SocketId};
use cenote_core::pool::Instant;
use cenote_core::wire::Flags;
use cenote_shell::failure::DeferredEffects;
use cenote_shell::monitor::{self, PoolChange, ServerSubscribers};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::talk::Talks;
use crate::connection::MongoConnector;
use crate::pool::Pool;
use crate::sync::{Mutex, MutexGuard};

/// One server that is watched.
pub(super) type Watch = monitor::MonitorDriver<Means>;

pub(crate) struct Means {
    pub(super) connector: MongoConnector,
    pub(super) runtime: Handle,
    pub(super) talks: Talks,
    pool: Pool,
    /// Of the client: whoever waits for a server looks again.
    news: Arc<Notify>,
    origin: tokio::time::Instant,
    /// The timer may have to fire earlier than it was told.
    alarm: Notify,
    timer: Mutex<Option<AbortHandle>>,
}

/// Nothing is done yet: see [`begin`].
pub(super) fn start(
    (connector, pool): (MongoConnector, Pool),
    (options, establish): (MonitorOptions, Arc<EstablishOptions>),
    (subscribers, news): (Arc<ServerSubscribers>, Arc<Notify>),
    origin: tokio::time::Instant,
) -> Result<Arc<Watch>, InvalidMonitorOptions> {
    let address = Arc::clone(&pool.shared().address);
    let means = Means {
        connector,
        runtime: Handle::current(),
        talks: Talks::default(),
        pool,
        news,
        origin,
        alarm: Notify::new(),
        timer: Mutex::new(None),
    };
    Watch::new((address, subscribers), (options, establish), means)
}

/// Begins with the first check.
pub(super) fn begin(watch: &Arc<Watch>) {
    let means = watch.runtime();
    let timer = means.runtime.spawn(keep_time(Arc::clone(watch))).abort_handle();
    *means.timer() = Some(timer);
    watch.begin();
}

/// Ends all that was begun: sockets close as soon as their tasks are stopped.
pub(super) fn close(watch: &Arc<Watch>) {
    watch.feed(Input::Close);
    let timer = watch.runtime().timer().take();
    timer.into_iter().for_each(|timer| timer.abort());
}

/// Feeds `Timer` whenever the machine asked for it.
async fn keep_time(watch: Arc<Watch>) {
    let means = watch.runtime();
    loop {
        let due = watch.lock().arm();
        let due = due.and_then(|due| means.time_of(due));
        let rescheduled = means.alarm.notified();
        let Some(due) = due else {
            rescheduled.await;
            continue;
        };
        tokio::select! {
            biased;
            () = rescheduled => {}
            () = tokio::time::sleep_until(due) => watch.feed(Input::Timer),
        }
    }
}

impl monitor::MonitorRuntime for Means {
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    fn change_pool(&self, change: PoolChange) -> DeferredEffects {
        let fed = self.pool.shared().feed_within(change.into_input());
        Box::new(move || fed.settle())
    }

    fn open(watch: &Arc<Watch>, socket: SocketId) {
        watch.runtime().talks.open(watch, socket);
    }

    fn send(&self, socket: SocketId, command: Command, flags: Flags) {
        self.talks.send(socket, command, flags);
    }

    fn close(&self, socket: SocketId) {
        self.talks.close(socket);
    }

    fn tell(watch: &Arc<Watch>, event: Event) {
        watch.tell(event);
    }

    fn tell_who_waits(&self) {
        self.news.notify_waiters();
    }

    fn call_timer(&self) {
        self.alarm.notify_one();
    }
}

impl Means {
    /// `None` is out of tokio's reach, which is never.
    fn time_of(&self, instant: Instant) -> Option<tokio::time::Instant> {
        self.origin.checked_add(instant.saturating_since(Instant::ORIGIN))
    }

    fn timer(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What a server is watched with: tasks on the event loop, and its timer. The rest is
//! [`cenote_shell::monitor`].

use std::sync::Arc;

use cenote_core::connect::{Command, EstablishOptions};
use cenote_core::monitor::{Event, Input, InvalidMonitorOptions, MonitorOptions, SocketId};
use cenote_core::pool::Instant;
use cenote_core::wire::Flags;
use cenote_shell::failure::DeferredEffects;
use cenote_shell::monitor::{self, PoolChange, ServerSubscribers};

use super::news::News;
use super::talk::Talks;
use crate::connection::MongoConnector;
use crate::drainer::Drainer;
use crate::event_loop::EventLoop;
use crate::pool::Pool;
use crate::timer::{self, Due, TIMER, Timed};

/// One server that is watched.
pub(super) type Watch = monitor::MonitorDriver<Means>;

pub(crate) struct Means {
    pub(super) connector: MongoConnector,
    pub(super) talks: Talks,
    pool: Pool,
    /// Of the client: whoever waits for a server looks again.
    news: Arc<News>,
    origin: std::time::Instant,
}

/// Nothing is done yet: see [`begin`].
pub(super) fn start(
    (connector, pool): (MongoConnector, Pool),
    (options, establish): (MonitorOptions, Arc<EstablishOptions>),
    (subscribers, news): (Arc<ServerSubscribers>, Arc<News>),
    (event_loop, origin): (EventLoop, std::time::Instant),
) -> Result<Arc<Watch>, InvalidMonitorOptions> {
    let address = Arc::clone(&pool.shared().address);
    let means = Means { connector, talks: Talks::new(event_loop), pool, news, origin };
    Watch::new((address, subscribers), (options, establish), means)
}

/// Begins with the first check.
pub(super) fn begin(watch: &Arc<Watch>) {
    timer::start(watch, &watch.runtime().talks.event_loop());
    watch.begin();
}

/// Ends all that was begun: sockets close in the loop's next turn.
pub(super) fn close(watch: &Arc<Watch>) {
    watch.feed(Input::Close);
    watch.runtime().talks.event_loop().call(TIMER);
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
        let _drainer = Drainer::of(watch);
        watch.tell(event);
    }

    fn tell_who_waits(&self) {
        self.news.tell();
    }

    fn call_timer(&self) {
        self.talks.event_loop().call(TIMER);
    }
}

impl Timed for Watch {
    fn due(&self) -> Due {
        let means = self.runtime();
        let mut desk = self.lock();
        if desk.is_closed() {
            return Due::Never;
        }
        match desk.arm() {
            Some(armed) if armed <= monitor::MonitorRuntime::now(means) => Due::Now,
            armed => Due::At(armed.and_then(|armed| means.time_of(armed))),
        }
    }

    fn time_is_up(self: &Arc<Self>) {
        self.feed(Input::Timer);
    }
}

impl Means {
    /// `None` is out of the clock's reach, which is never.
    fn time_of(&self, instant: Instant) -> Option<std::time::Instant> {
        self.origin.checked_add(instant.saturating_since(Instant::ORIGIN))
    }
}

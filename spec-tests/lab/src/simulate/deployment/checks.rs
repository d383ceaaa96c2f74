//! How often a server is checked: not in a loop, and often enough to notice that it is silent.

use std::collections::VecDeque;
use std::time::Duration;

use cenote_core::monitor::MonitorOptions;
use cenote_core::pool::Instant;

use super::server::Server;
use super::world::World;

/// The checks of one server that its monitor began, by opening a socket or by asking on it: a streamed reply costs none.
#[derive(Debug, Default)]
pub(super) struct CheckRate {
    last: VecDeque<Instant>,
    answered: Option<Instant>,
}

/// No more than [`MOST`](CheckRate::MOST) within this time.
const WINDOW: Duration = Duration::from_secs(1);

impl CheckRate {
    /// Within a second there is a check each 500 ms at most. In addition a socket that is opened is asked at once where
    /// its server streams, and a known server whose connection failed is checked again at once.
    const MOST: usize = 6;

    /// # Errors
    ///
    /// There are too many.
    pub(super) fn begins(&mut self, now: Instant) -> Result<(), String> {
        self.last.push_back(now);
        while self.last.front().is_some_and(|first| *first + WINDOW < now) {
            self.last.pop_front();
        }
        match self.last.len() {
            0..=Self::MOST => Ok(()),
            many => Err(format!("the server is checked in a loop: {many} times within {WINDOW:?}")),
        }
    }

    /// The server has answered a check.
    pub(super) fn answered(&mut self, now: Instant) {
        self.answered = Some(now);
    }
}

impl World<'_> {
    /// A server that has not answered for long is not believed: the next check comes after a heartbeat, or the server
    /// streams that often; the monitor waits for it for `connectTimeoutMS`; and 500 ms may be between two checks. Clocks
    /// and timers that are wrong make that later, and so does a thread that performs actions late.
    pub(super) fn expect_fresh(&self) -> Result<(), String> {
        if self.plan.time.is_faulty() || self.client.is_late() {
            return Ok(());
        }
        let plan = self.plan;
        let bound = plan.heartbeat + plan.connect_timeout + MonitorOptions::MIN_HEARTBEAT_FREQUENCY;
        let (client, topology) = (&self.client, self.client.state.description());
        let watched = client.by_address.values().filter_map(|number| client.servers.get(number));
        let mut watched = watched.filter(|_| client.settings.is_watched);
        let is_believed_too_long = |server: &&Server| {
            let since = |answered: Instant| answered.max(client.last_late);
            server.checks.answered.is_none_or(|answered| self.now > since(answered) + bound)
                && topology.server(&server.address).is_some_and(|it| it.is_known())
        };
        match watched.find(is_believed_too_long) {
            Some(server) => {
                Err(format!("{} is silent for {bound:?}, and believed: {topology}", server.address))
            }
            None => Ok(()),
        }
    }
}

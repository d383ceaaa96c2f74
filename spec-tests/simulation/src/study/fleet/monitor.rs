//! How a client monitors its server.

use std::time::Duration;

use cenote_core::pool::Input;

use super::due::Due;
use super::server::Reply;
use super::{Failure, Fleet};

/// `minHeartbeatFrequencyMS`: the interval of checks of an unavailable server while requests wait.
const AGAIN: Duration = Duration::from_millis(500);

impl Fleet<'_> {
    pub(super) fn become_ready(&mut self, client: u32) {
        self.of(client).is_watching = false;
        self.feed(client, Input::Ready);
        for ask in std::mem::take(&mut self.of(client).held) {
            self.ask(client, ask);
        }
    }

    /// SDAM marks the server unknown, and checks it again.
    pub(super) fn clear(&mut self, client: u32, cause: Failure) {
        self.log.clears.push(self.since_begin());
        self.feed(client, Input::Clear { cause, interrupt: false, service: None });
        let watched = self.of(client);
        if !watched.is_watching {
            watched.is_watching = true;
            // Clients do not check at the same time, because they did not start at the same time.
            let after = self.random.below(AGAIN.as_nanos() as u64);
            self.plan(Duration::from_nanos(after), Due::Check { client });
        }
    }

    /// Checks on the monitor's own connection.
    pub(super) fn check(&mut self, client: u32) {
        let reply = self.server.check(self.now);
        let (at, is_good) = match reply {
            Reply::Done(at) if at.saturating_since(self.now) < self.setup.connect_timeout => {
                (at, true)
            }
            Reply::Done(_) => (self.now + self.setup.connect_timeout, false),
            Reply::Refused => (self.now, false),
        };
        self.agenda.plan(at + self.setup.service.round_trip, Due::Checked { client, is_good });
    }

    pub(super) fn checked(&mut self, client: u32, is_good: bool) {
        if is_good && self.server.is_up {
            self.become_ready(client);
        } else {
            self.plan(AGAIN, Due::Check { client });
        }
    }

    /// All connections fail, including those of monitors.
    pub(super) fn goes_down(&mut self) {
        self.server.go_down(self.now);
        for client in 0..self.setup.clients {
            self.break_all(client);
            self.clear(client, Failure::Broken);
        }
    }
}

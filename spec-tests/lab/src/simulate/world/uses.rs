//! What callers do with the connections that they get.

use std::time::Duration;

use cenote_core::pool::Health;

use super::{Due, FAST, World};
use crate::simulate::accounting::Socket;
use crate::simulate::coverage::Situation;
use crate::simulate::trouble::Trouble;

/// Uses do not end later than this in order to coincide with a deadline of the pool.
const COINCIDENCE: Duration = Duration::from_millis(500);

impl World<'_> {
    /// The use ends by itself, by the server's trouble, or never. A conversation ends it when the reply has come, at the
    /// latest with the timeout.
    pub(super) fn use_connection(&mut self, connection: u64) {
        let Some(socket) = self.accounting.socket(connection) else { return };
        let use_number = socket.use_number;
        let due = Due::Finish { connection, use_number };
        if self.wire.is_some() {
            self.send_ping(connection);
        }
        if self.is_recovering {
            let longest = if self.wire.is_some() { self.plan.connect_timeout } else { FAST };
            return self.plan_in(longest, due);
        }
        if self.random.one_in(self.plan.profile.leaks) {
            self.coverage.count(Situation::Leaks);
            return;
        }
        let work = self.plan.work.draw(&mut self.random);
        let after = match self.trouble {
            // In the middle of the conversation, if there is one.
            _ if self.wire.is_some() && self.keeps_late_replies() && self.late.one_in(3) => work,
            _ if self.wire.is_some() => self.plan.connect_timeout,
            Some(Trouble::Stalls) => self.plan.connect_timeout,
            Some(Trouble::IsSlow) => work * 10,
            _ => work,
        };
        let after = self.until_due().unwrap_or(after);
        self.plan_in(after, due);
        if self.random.one_in(self.plan.profile.pins) {
            self.plan_in(Duration::ZERO, Due::Repurpose { connection, use_number });
        }
    }

    /// In what state a caller checks in its connection. The server's errors are reported to SDAM first.
    pub(super) fn health(&mut self, socket: &Socket) -> Result<Health<u64>, String> {
        let breaks = !self.is_recovering && self.random.one_in(self.plan.profile.breaks);
        let awaited = self.awaited_reply(socket.id.number());
        let times_out = if self.wire.is_some() {
            awaited.is_some()
        } else {
            self.trouble == Some(Trouble::Stalls)
        };
        for (happened, what) in [
            (breaks, Situation::ReturnsBroken),
            (socket.is_dead, Situation::BrokenInUse),
            (times_out, Situation::SilentInUse),
        ] {
            if happened {
                self.coverage.count(what);
            }
        }
        let gives_up = self.keeps_late_replies()
            && !socket.is_dead
            && !breaks
            && (times_out || self.leaves_before_a_reply());
        if gives_up {
            self.coverage.count(Situation::LateReply);
            let request_id = awaited.unwrap_or_else(|| self.late.number() as i32);
            return Ok(Health::PendingResponse { request_id, cause: self.now.as_nanos() });
        }
        let is_broken = socket.is_dead || breaks || times_out;
        let cause = self.now.as_nanos();
        if self.blames_server(socket, is_broken) && !self.subject.pool().is_stale(socket.id) {
            self.clear(self.service_of(socket), false)?;
        }
        Ok(if is_broken { Health::Errored(cause) } else { Health::Healthy })
    }

    /// Without a conversation, a reply can be late at any time.
    fn leaves_before_a_reply(&mut self) -> bool {
        self.wire.is_none() && !self.is_recovering && self.late.one_in(3)
    }

    fn keeps_late_replies(&self) -> bool {
        self.plan.options.experimental_pending_response == Some(true)
    }

    /// The time until the pool's next deadline, if this use is to end then.
    fn until_due(&mut self) -> Option<Duration> {
        let due = self.subject.pool().next_deadline()?.at;
        let is_soon = due > self.now && due < self.now + COINCIDENCE;
        if !is_soon || !self.random.one_in(self.plan.coincides) {
            return None;
        }
        self.coverage.count(Situation::Coincidence);
        Some(due.saturating_since(self.now))
    }

    /// A network error or a state change of the server clears the pool; a timeout does not.
    fn blames_server(&self, socket: &Socket, is_broken: bool) -> bool {
        match self.trouble {
            _ if self.is_recovering => false,
            Some(Trouble::StepsDown) => true,
            Some(Trouble::Stalls) => false,
            _ => is_broken && socket.is_dead,
        }
    }
}

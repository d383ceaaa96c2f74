//! Replies that come after their connection was checked in.

use std::time::Duration;

use cenote_core::pool::Input;

use super::{Due, FAST, World};
use crate::simulate::accounting::SocketState;
use crate::simulate::coverage::Situation;

impl World<'_> {
    /// A late reply was read, or some of it, or the connection is broken.
    pub(super) fn drained(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        let is_wanted = match socket.state {
            SocketState::Draining => true,
            SocketState::DrainAborted => false,
            SocketState::Opening { .. }
            | SocketState::Aborted
            | SocketState::Idle
            | SocketState::Used { .. }
            | SocketState::Inherited { .. } => return Ok(()),
        };
        // A shell that stops at once never answers; a slower one does.
        if !is_wanted && (self.is_recovering || self.late.flip()) {
            self.hang_up(connection);
            self.accounting.drop_drain(connection);
            return Ok(());
        }
        let breaks = !self.is_recovering && self.late.one_in(6);
        let is_unread = self.is_recovering && self.awaited_reply(connection).is_some();
        if socket.is_dead || breaks || is_unread {
            self.hang_up(connection);
            self.coverage.count(Situation::DrainFailed);
            self.accounting.drop_drain(connection);
            return self.feed(Input::DrainFailed { id: socket.id, cause: self.now.as_nanos() });
        }
        if is_wanted && !self.is_recovering && self.late.one_in(3) {
            self.plan_drain(connection);
            return self.feed(Input::DrainProgress { id: socket.id });
        }
        self.coverage.count(Situation::Drained);
        let Some(conn) = self.accounting.drained(connection) else { return Ok(()) };
        self.feed(Input::DrainSucceeded { id: socket.id, conn })?;
        self.expect_gone_unless(is_wanted, connection)
    }

    /// Plans when a late reply comes; some never do. A conversation reads it, or has read it.
    pub(super) fn plan_drain(&mut self, connection: u64) {
        if self.wire.is_some() {
            if self.awaited_reply(connection).is_none() {
                self.plan_in(FAST, Due::Drained { connection });
            }
            return;
        }
        let late = &mut self.late;
        let after = match late.below(8) {
            _ if self.is_recovering => FAST,
            0 => Duration::from_secs(3600),
            1 => Duration::from_millis(late.between(1, 5_000)),
            _ => self.plan.work.draw(late),
        };
        self.plan_in(after, Due::Drained { connection });
    }
}

//! Forks, and misuse of the state machines.

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::Flags;

use super::error::NumberedError;
use super::network::{Packet, Side};
use super::transport::World;
use crate::simulate::accounting::SocketState;
use crate::simulate::misuse::misuse;
use crate::simulate::world;

impl World<'_> {
    /// Connections that are checked out are useless after a fork; the caller notices that or not.
    pub(super) fn abandon_uses(&mut self) {
        let all: Vec<_> = self.accounting.sockets().copied().collect();
        for socket in all {
            let (connection, use_number) = (socket.id.number(), socket.use_number);
            match socket.state {
                SocketState::Used { .. } => {}
                // A late attempt to establish it belongs to the parent.
                SocketState::Aborted => {
                    self.hang_up_connection(connection);
                    self.accounting.drop_unopened(connection);
                    continue;
                }
                SocketState::Opening { .. }
                | SocketState::Idle
                | SocketState::Draining
                | SocketState::DrainAborted
                | SocketState::Inherited { .. } => continue,
            }
            let reason = "it was opened by the process that this one was forked from";
            let error = ConnectionError::network(Stage::Operation, reason);
            let broken = self.random.flip().then_some(error);
            self.transport.uses.entry(connection).or_default().broken = broken;
            let after = self.time(self.plan.work);
            self.plan_in(after, world::Due::Finish { connection, use_number });
        }
    }

    /// The parent's sockets end with it. The child must not have sent anything there.
    pub(super) fn parent_ends(&mut self) -> Result<(), String> {
        for (link, sent) in std::mem::take(&mut self.transport.parents) {
            if self.transport.network.sent(link).is_some_and(|now| now != sent) {
                return Err(format!("a child sends on its parent's link {link}"));
            }
            self.send(link, Side::Far, Packet::End);
            self.transport.network.hang_up(link);
        }
        Ok(())
    }

    pub(super) fn misuse_pool(&mut self) -> Option<Result<(), String>> {
        let number = self.transport.errors;
        let cause = || {
            NumberedError::new(
                number,
                ConnectionError::network(Stage::Operation, "an error that did not occur"),
            )
        };
        let input = misuse(&self.accounting, self.is_balanced(), &mut self.random, cause)?;
        let at = self.look_at_clock();
        Some(self.subject.feed_misuse(at, input))
    }

    /// Sends a command on a connection that still waits for a reply.
    pub(super) fn send_out_of_turn(&mut self) -> Option<Result<(), String>> {
        let mut sockets = self.transport.sockets.values_mut();
        let socket = sockets.find(|it| it.conversation.awaits_reply())?;
        let command = rawdoc! { "ping": 1 };
        let sent = socket.conversation.send(&command, Some("admin"), Flags::NONE);
        let is_refused = sent.is_err() && socket.conversation.awaits_reply();
        let complaint = || "a command is accepted while another one waits for its reply".to_owned();
        Some(if is_refused { Ok(()) } else { Err(complaint()) })
    }
}

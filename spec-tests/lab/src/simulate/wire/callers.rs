//! What callers do with their connections: each sends some commands and checks in the connection.

use bson::{RawDocument, rawdoc};
use cenote_core::error::{CommandError, ConnectionError, ReplyPart, Stage};
use cenote_core::wire::Flags;

use super::conversation::StreamEnd;
use super::transport::{Due, World};
use crate::simulate::world;

/// What a caller does with a connection.
#[derive(Debug, Default)]
pub(super) struct Use {
    /// How many commands are still to be sent.
    pub(super) commands: u32,
    /// The caller checks in the connection before the reply has arrived.
    pub(super) is_abandoned: bool,
    /// Why the connection must not be used again.
    pub(super) broken: Option<ConnectionError>,
}

impl World<'_> {
    /// Sends the next command, or checks in the connection.
    pub(super) fn speak(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        if !self.is_used(connection, use_number) {
            return Ok(());
        }
        let Some(Use { commands, is_abandoned, broken }) = self.transport.uses.get_mut(&connection)
        else {
            return Ok(());
        };
        if *commands == 0 || broken.is_some() {
            return self.finish(connection, use_number);
        }
        *commands -= 1;
        let command = *commands;
        let is_abandoned = *is_abandoned;
        let Some(&link) = self.transport.links.get(&connection) else { return Ok(()) };
        let sent = self.send_command(link, &rawdoc! { "ping": 1 }, Some("admin"), Flags::NONE);
        if let Err(error) = sent {
            return self.operation_failed(connection, &error);
        }
        let silence = Due::Silence { connection, use_number, command };
        self.plan_in(self.plan.transport.socket_timeout, silence);
        if is_abandoned {
            let after = self.plan.transport.latency.draw(&mut self.random);
            self.plan_in(after, world::Due::Finish { connection, use_number });
        }
        Ok(())
    }

    pub(super) fn replied(&mut self, connection: u64, reply: &RawDocument) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        if let Some(error) = CommandError::from_reply(reply) {
            if error.part == ReplyPart::Command {
                let error = ConnectionError::command(Stage::Operation, error);
                return self.operation_failed(connection, &error);
            }
        }
        let after = self.time(self.plan.work);
        let use_number = socket.use_number;
        self.plan_in(after, Due::Speak { connection, use_number });
        Ok(())
    }

    /// The socket timeout of a command is over.
    pub(super) fn silence(
        &mut self,
        connection: u64,
        use_number: u64,
        command: u32,
    ) -> Result<(), String> {
        let is_same = self.transport.uses.get(&connection).is_some_and(|it| it.commands == command);
        let Some(&link) = self.transport.links.get(&connection) else { return Ok(()) };
        let awaits =
            self.transport.sockets.get(&link).is_some_and(|it| it.conversation.awaits_reply());
        if !is_same || !awaits || !self.is_used(connection, use_number) {
            return Ok(());
        }
        self.break_conversation(link, StreamEnd::TimedOut(self.plan.transport.socket_timeout))
    }

    /// SDAM sees the error first; then the caller checks in the connection, broken or not.
    pub(super) fn operation_failed(
        &mut self,
        connection: u64,
        error: &ConnectionError,
    ) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        if !error.leaves_connection_healthy() {
            if let Some(used) = self.transport.uses.get_mut(&connection) {
                used.broken = Some(error.clone());
            }
        }
        self.report_to_sdam(socket.id, error)?;
        self.finish(connection, socket.use_number)
    }

    /// Why a connection must not be used again.
    pub(super) fn flaw_of(&mut self, connection: u64) -> Option<ConnectionError> {
        let broken = self.transport.uses.get_mut(&connection).and_then(|used| used.broken.take());
        broken.or_else(|| {
            let link = self.transport.links.get(&connection)?;
            let socket = self.transport.sockets.get(link)?;
            let reason = "abandoned in the middle of a command";
            let unusable = || ConnectionError::network(Stage::Operation, reason);
            (!socket.conversation.is_reusable()).then(unusable)
        })
    }

    fn is_used(&self, connection: u64, use_number: u64) -> bool {
        self.accounting.socket(connection).is_some_and(|socket| socket.is_used(use_number))
    }
}

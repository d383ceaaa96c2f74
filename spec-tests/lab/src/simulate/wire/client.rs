//! The client's ends of connections, from connecting until they are closed.

use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};

use super::conversation::{Conversation, Output};
use super::network::{Packet, Side};
use crate::simulate::accounting::SocketState;
use crate::simulate::coverage::Situation;
use crate::simulate::trouble::Trouble;
use crate::simulate::world::{Due, FAST, World};

impl World<'_> {
    pub(in crate::simulate) fn start_conversation(&mut self, connection: u64) {
        let Some(wire) = &mut self.wire else { return };
        let nonces = [(); 2].map(|()| wire.nonce());
        let conversation = Conversation::new(&wire.options, nonces, wire.secrets.clone());
        wire.conversations.insert(connection, conversation);
        wire.network.open(connection, self.trouble == Some(Trouble::Vanishes));
        self.send(connection, Side::Far, Packet::Open);
    }

    /// The pool does not want it any more. A shell aborts at once, or is too late and answers.
    pub(in crate::simulate) fn abort_conversation(&mut self, connection: u64) {
        let Some(wire) = &mut self.wire else { return };
        let is_over = !wire.conversations.contains_key(&connection);
        if self.is_recovering || is_over || wire.random.flip() {
            self.hang_up(connection);
            self.accounting.drop_unopened(connection);
        }
    }

    /// The pool does not want the late reply any more. A shell stops at once, or is too late.
    pub(in crate::simulate) fn abort_drain_of_conversation(&mut self, connection: u64) {
        if self.wire.is_some() {
            self.plan_in(FAST, Due::Drained { connection });
        }
    }

    /// The client closes its socket.
    pub(in crate::simulate) fn hang_up(&mut self, connection: u64) {
        let now = self.time_of_server();
        let Some(wire) = &mut self.wire else { return };
        wire.conversations.remove(&connection);
        if let Some(id) = wire.network.close(connection) {
            wire.server.closed(now, id);
            self.poll_server();
        }
    }

    /// After a fork all sockets are the parent's, which ends.
    pub(in crate::simulate) fn abandon_conversations(&mut self) {
        let Some(wire) = &self.wire else { return };
        let all: Vec<_> = wire.conversations.keys().copied().collect();
        for connection in all {
            self.hang_up(connection);
            // A late attempt to establish it belongs to the parent.
            if self.accounting.socket(connection).is_some_and(|it| it.state == SocketState::Aborted)
            {
                self.accounting.drop_unopened(connection);
            }
        }
    }

    pub(in crate::simulate) fn send_ping(&mut self, connection: u64) {
        let Some(wire) = &mut self.wire else { return };
        let Some(conversation) = wire.conversations.get_mut(&connection) else { return };
        if let Some(bytes) = conversation.ping() {
            self.send_bytes(connection, Side::Far, &bytes);
        }
    }

    /// The request of this connection whose reply has not come.
    pub(in crate::simulate) fn awaited_reply(&self, connection: u64) -> Option<i32> {
        self.wire.as_ref()?.conversations.get(&connection)?.awaited_reply()
    }

    /// Sends a packet with the network's latency: to establish a connection takes some eight of them.
    pub(super) fn send(&mut self, connection: u64, to: Side, packet: Packet) {
        let Some(wire) = &mut self.wire else { return };
        let takes = if self.is_recovering { FAST } else { self.plan.open.draw(&mut wire.random) };
        let mut after = takes / 8;
        if self.trouble == Some(Trouble::IsSlow) {
            after *= 10;
        }
        if wire.network.send(connection, to, packet) {
            self.plan_in(after, Due::Arrive { connection, at: to });
        }
    }

    /// Sends bytes, split into packets as the plan says.
    pub(super) fn send_bytes(&mut self, connection: u64, to: Side, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(wire) = &mut self.wire else { return };
            let length = match wire.pieces {
                0 => rest.len(),
                most => usize::try_from(wire.random.between(1, most)).unwrap_or(1),
            };
            let (piece, later) = rest.split_at(length.min(rest.len()));
            self.send(connection, to, Packet::Bytes(piece.to_vec()));
            rest = later;
        }
    }

    /// A packet arrives.
    pub(in crate::simulate) fn arrive(&mut self, connection: u64, at: Side) -> Result<(), String> {
        let Some(wire) = &mut self.wire else { return Ok(()) };
        let Some(packet) = wire.network.arrive(connection, at) else { return Ok(()) };
        if at == Side::Far {
            self.arrive_at_server(connection, packet);
            return Ok(());
        }
        let Some(conversation) = wire.conversations.get_mut(&connection) else { return Ok(()) };
        let outputs = match packet {
            Packet::Open => conversation.connected(&mut wire.scram),
            Packet::Bytes(bytes) => conversation.received(&bytes, &mut wire.scram),
            Packet::End(how) => conversation.ended(how, &mut wire.scram),
        };
        outputs.into_iter().try_for_each(|output| self.handle_output(connection, output))
    }

    fn handle_output(&mut self, connection: u64, output: Output) -> Result<(), String> {
        match output {
            Output::Send(bytes) => {
                self.send_bytes(connection, Side::Far, &bytes);
                Ok(())
            }
            Output::Handshaken(service) => {
                self.handshaken(connection, service.filter(|_| self.is_balanced()))
            }
            Output::Opened => {
                if let Some(SocketState::Aborted) = self.state_of(connection) {
                    self.coverage.count(Situation::LateAnswer);
                }
                self.established(connection)
            }
            Output::Replied => {
                self.replied(connection);
                Ok(())
            }
            Output::Failed(error) => self.conversation_failed(connection, &error),
        }
    }

    fn state_of(&self, connection: u64) -> Option<SocketState> {
        self.accounting.socket(connection).map(|socket| socket.state)
    }

    /// The caller works, then checks in the connection; or a late reply was read.
    fn replied(&mut self, connection: u64) {
        let Some(socket) = self.accounting.socket(connection) else { return };
        match socket.state {
            SocketState::Used { .. } => {
                let after = if self.is_recovering { FAST } else { self.work_time() };
                let use_number = socket.use_number;
                self.plan_in(after, Due::Finish { connection, use_number });
            }
            SocketState::Draining | SocketState::DrainAborted => {
                self.plan_in(FAST, Due::Drained { connection });
            }
            SocketState::Opening { .. }
            | SocketState::Aborted
            | SocketState::Idle
            | SocketState::Inherited { .. } => {}
        }
    }

    fn work_time(&mut self) -> Duration {
        let work = self.plan.work;
        self.wire.as_mut().map_or(FAST, |wire| work.draw(&mut wire.random))
    }

    fn conversation_failed(
        &mut self,
        connection: u64,
        error: &ConnectionError,
    ) -> Result<(), String> {
        let Some(conversation) =
            self.wire.as_ref().and_then(|wire| wire.conversations.get(&connection))
        else {
            return Ok(());
        };
        conversation.secrets.expect_none_in(error)?;
        let Some(socket) = self.accounting.socket_mut(connection) else { return Ok(()) };
        socket.is_dead = true;
        let due = match socket.state {
            SocketState::Opening { .. } | SocketState::Aborted => {
                let is_login = error.stage() == Stage::Authentication;
                let (login, other) = (Situation::LoginFailed, Situation::OpeningFailed);
                self.coverage.count(if is_login { login } else { other });
                self.hang_up(connection);
                return self.fail_to_open(connection, !error.is_overload());
            }
            SocketState::Used { .. } | SocketState::Inherited { .. } => {
                Due::Finish { connection, use_number: socket.use_number }
            }
            SocketState::Idle => Due::PeerCloses { connection },
            SocketState::Draining | SocketState::DrainAborted => Due::Drained { connection },
        };
        self.plan_in(Duration::ZERO, due);
        Ok(())
    }
}

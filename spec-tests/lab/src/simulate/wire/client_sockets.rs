//! The client's sockets, from connecting until they are closed.

use std::sync::Arc;
use std::time::Duration;

use bson::RawDocument;
use cenote_core::connect::{EstablishOptions, Nonce};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{self, SocketId};
use cenote_core::pool::Input;
use cenote_core::wire::Flags;

use super::conversation::{Conversation, Output, StreamEnd};
use super::network::{LinkId, Packet, Side};
use super::transport::{Due, Wire, World};
use crate::simulate::accounting::SocketState;
use crate::simulate::coverage::Situation;

/// The client's end of a link.
#[derive(Debug)]
pub(super) struct ClientSocket {
    owner: Owner,
    pub(super) conversation: Conversation,
    /// How long establishing it may take.
    allowed: Duration,
}

/// The user of a socket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// The pool's connection with this number.
    Pool(u64),
    Monitor(SocketId),
}

impl World<'_> {
    pub(super) fn open_link(
        &mut self,
        owner: Owner,
        options: Arc<EstablishOptions>,
        allowed: Duration,
    ) -> LinkId {
        let is_monitor = matches!(owner, Owner::Monitor(_));
        let nonces = [(); 2].map(|()| self.nonce());
        let link = self.transport.network.open();
        let conversation = Conversation::new(options, nonces, is_monitor);
        self.transport.sockets.insert(link, ClientSocket { owner, conversation, allowed });
        self.send(link, Side::Far, Packet::Open);
        self.plan_in(allowed, Due::OpeningTimesOut { link });
        link
    }

    fn nonce(&mut self) -> Nonce {
        let mut bytes = [0; Nonce::RANDOM_BYTES];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.random.number().to_le_bytes());
        }
        Nonce::from_random(bytes)
    }

    pub(super) fn opening_times_out(&mut self, link: LinkId) -> Result<(), String> {
        match self.transport.sockets.get(&link) {
            Some(socket) if socket.conversation.is_opening() => {
                let after = socket.allowed;
                self.break_conversation(link, StreamEnd::TimedOut(after))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A packet arrives at the client.
    pub(super) fn arrive_near(&mut self, link: LinkId, packet: Packet) -> Result<(), String> {
        self.transport.client.now = self.now;
        let Wire { sockets, client, scanner, .. } = &mut self.transport;
        let Some(socket) = sockets.get_mut(&link) else { return Ok(()) };
        let conversation = &mut socket.conversation;
        let outputs = match packet {
            Packet::Open => conversation.connected(client, scanner),
            Packet::Bytes(bytes) => conversation.received(&bytes, client, scanner),
            Packet::End => conversation.broke(StreamEnd::End, client, scanner),
            Packet::Refusal => conversation.broke(StreamEnd::Refused, client, scanner),
            Packet::Reset => conversation.broke(StreamEnd::Reset, client, scanner),
        };
        self.handle_outputs(link, outputs)
    }

    pub(super) fn break_conversation(
        &mut self,
        link: LinkId,
        how: StreamEnd,
    ) -> Result<(), String> {
        self.transport.client.now = self.now;
        let Wire { sockets, client, scanner, .. } = &mut self.transport;
        let Some(socket) = sockets.get_mut(&link) else { return Ok(()) };
        let outputs = socket.conversation.broke(how, client, scanner);
        self.handle_outputs(link, outputs)
    }

    /// Sends a command on an established connection.
    pub(super) fn send_command(
        &mut self,
        link: LinkId,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<(), ConnectionError> {
        let Some(socket) = self.transport.sockets.get_mut(&link) else { return Ok(()) };
        let bytes = socket.conversation.send(command, database, flags)?;
        self.send_bytes(link, Side::Far, &bytes);
        Ok(())
    }

    /// Executes the outputs of a conversation, as long as its socket exists.
    fn handle_outputs(&mut self, link: LinkId, outputs: Vec<Output>) -> Result<(), String> {
        for output in outputs {
            let Some(socket) = self.transport.sockets.get(&link) else { return Ok(()) };
            match (socket.owner, output) {
                (_, Output::Send(bytes)) => self.send_bytes(link, Side::Far, &bytes),
                (Owner::Pool(connection), output) => self.output_for_pool(connection, output)?,
                (Owner::Monitor(socket), output) => self.output_for_monitor(socket, output)?,
            }
        }
        Ok(())
    }

    fn output_for_monitor(&mut self, socket: SocketId, output: Output) -> Result<(), String> {
        let input = match output {
            Output::Send(_) | Output::Handshaken(_) => return Ok(()),
            Output::Opened { hello, round_trip } => {
                monitor::Input::Opened { socket, hello, round_trip }
            }
            Output::Reply { body, more_to_come } => {
                monitor::Input::Replied { socket, reply: body, more_to_come }
            }
            Output::Failed(error) => monitor::Input::Failed { socket, error },
            // Some shells notice this only when they send something.
            Output::Unexpected(error) if self.random.flip() => {
                monitor::Input::Failed { socket, error }
            }
            Output::Unexpected(_) => return Ok(()),
        };
        self.feed_monitor(input)
    }

    fn output_for_pool(&mut self, connection: u64, output: Output) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        if socket.state == SocketState::Aborted {
            self.coverage.count(Situation::LateAnswer);
        }
        match (output, socket.state) {
            (Output::Send(_), _) => Ok(()),
            (Output::Handshaken(hello), SocketState::Opening { is_greeted: false }) => {
                if let Some(socket) = self.accounting.socket_mut(connection) {
                    socket.state = SocketState::Opening { is_greeted: true };
                }
                let service = hello.service_id.filter(|_| self.is_balanced());
                self.feed(Input::Handshaken { id: socket.id, service, clears_at_hello: None })
            }
            // It was sent before the abort arrived.
            (Output::Handshaken(hello), SocketState::Aborted) => {
                let service = hello.service_id.filter(|_| self.is_balanced());
                self.feed(Input::Handshaken { id: socket.id, service, clears_at_hello: None })
            }
            (Output::Opened { .. }, SocketState::Opening { .. }) => self.opened(connection),
            (Output::Opened { .. }, SocketState::Aborted) => {
                self.opened(connection)?;
                match self.accounting.socket(connection) {
                    Some(_) => Err(format!("{} was aborted, and is kept", socket.id)),
                    None => Ok(()),
                }
            }
            (Output::Reply { body, .. }, SocketState::Used { .. }) => {
                self.replied(connection, &body)
            }
            (Output::Failed(error), SocketState::Opening { .. } | SocketState::Aborted) => {
                self.fail_to_open(connection, &error)
            }
            (Output::Failed(error), SocketState::Used { .. }) => {
                let (silent, broken) = (Situation::SilentInUse, Situation::BrokenInUse);
                self.coverage.count(if error.is_timeout() { silent } else { broken });
                self.operation_failed(connection, &error)
            }
            (Output::Unexpected(error) | Output::Failed(error), SocketState::Idle) => {
                self.coverage.count(Situation::ClosedIdle);
                let cause = self.numbered(&error);
                self.feed(Input::IdleClosedByPeer { id: socket.id, cause })
            }
            // The caller will notice.
            (Output::Unexpected(_), SocketState::Used { .. }) => Ok(()),
            (output, state) => Err(format!("{} is {state:?}, and reports {output:?}", socket.id)),
        }
    }

    fn opened(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        let Some(conn) = self.accounting.open(connection) else { return Ok(()) };
        self.feed(Input::EstablishSucceeded { id: socket.id, conn })
    }

    /// SDAM sees the error first and may clear the pool, and with it this connection.
    fn fail_to_open(&mut self, connection: u64, error: &ConnectionError) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        self.coverage.count(match (error.is_timeout(), error.stage()) {
            (true, _) => Situation::OpeningTimedOut,
            (false, Stage::Authentication) => Situation::LoginFailed,
            (false, _) => Situation::OpeningFailed,
        });
        self.hang_up_connection(connection);
        self.report_to_sdam(socket.id, error)?;
        self.accounting.drop_unopened(connection);
        let cause = self.numbered(error);
        let overloaded = error.is_overload();
        self.feed(Input::EstablishFailed { id: socket.id, cause, overloaded })
    }

    pub(super) fn hang_up_connection(&mut self, connection: u64) {
        self.transport.uses.remove(&connection);
        if let Some(link) = self.transport.links.remove(&connection) {
            self.hang_up(link);
        }
    }

    /// The client closes its socket.
    pub(super) fn hang_up(&mut self, link: LinkId) {
        if self.transport.sockets.remove(&link).is_some() {
            self.send(link, Side::Far, Packet::End);
            self.transport.network.hang_up(link);
        }
    }
}

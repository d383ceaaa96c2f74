//! The sockets of monitors, at both ends.

use bson::RawDocument;
use cenote_core::address::ServerAddress;
use cenote_core::client::machine::Input;
use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{Event, Line, SocketId};
use cenote_core::topology::ServerId;

use super::cluster::{Condition, NodeKind, WrongAnswer};
use super::network::Place;
use super::server::{Asked, Message, MonitorSocket};
use super::world::{Due, World};

/// One for checks, and one for round-trip times.
const SOCKETS: usize = 2;

/// The client's end.
impl World<'_> {
    pub(super) fn open_socket(
        &mut self,
        server: ServerId,
        socket: SocketId,
        line: Line,
    ) -> Result<(), String> {
        let (number, now) = (self.next_connection(), self.now);
        let Some(its) = self.client.server(server) else { return Ok(()) };
        its.sockets.insert(socket, MonitorSocket::new(line, number, now));
        if its.sockets.len() > SOCKETS {
            return Err(format!("the monitor has {} sockets", its.sockets.len()));
        }
        if line == Line::Check {
            its.checks.begins(now).map_err(|what| format!("{}: {what}", its.address))?;
        }
        self.plan_in(self.plan.connect_timeout, Due::SocketTimesOut { server, socket });
        self.ask_node(server, socket, Asked::Hello);
        Ok(())
    }

    pub(super) fn send(
        &mut self,
        server: ServerId,
        socket: SocketId,
        command: &RawDocument,
    ) -> Result<(), String> {
        let now = self.now;
        let Some(its) = self.client.server(server) else { return Ok(()) };
        let open = its.sockets.get(&socket);
        let line = open.ok_or_else(|| format!("{socket} is not open"))?.line;
        if line == Line::Check {
            its.checks.begins(now).map_err(|what| format!("{}: {what}", its.address))?;
        }
        self.ask_node(server, socket, asked(command));
        Ok(())
    }

    pub(super) fn close_socket(
        &mut self,
        server: ServerId,
        socket: SocketId,
    ) -> Result<(), String> {
        let Some(its) = self.client.server(server) else { return Ok(()) };
        let closed = its.sockets.remove(&socket);
        closed.map(drop).ok_or_else(|| format!("{socket} is closed twice"))
    }

    fn ask_node(&mut self, server: ServerId, socket: SocketId, asked: Asked) {
        let Some(its) = self.client.server(server) else { return };
        let Some(open) = its.sockets.get_mut(&socket) else { return };
        open.exchange += 1;
        open.asked = asked;
        open.is_awaiting = false;
        let exchange = open.exchange;
        let after = self.time(self.plan.latency);
        self.plan_in(after, Due::Request { server, socket, exchange });
    }

    pub(super) fn socket_times_out(
        &mut self,
        server: ServerId,
        socket: SocketId,
    ) -> Result<(), String> {
        let after = self.plan.connect_timeout;
        let open = self.client.server(server).and_then(|its| its.sockets.get(&socket));
        if open.is_none_or(|open| open.is_open) {
            return Ok(());
        }
        let error = ConnectionError::timeout(Stage::Hello, after);
        self.feed_client(Input::SocketFailed { server, socket, error })
    }

    /// The next message has arrived.
    pub(super) fn message_arrives(
        &mut self,
        server: ServerId,
        socket: SocketId,
    ) -> Result<(), String> {
        let due = Due::Message { server, socket };
        match self.place(server) {
            Place::Node(node) if self.cluster.is_cut(node) => {
                self.hold(node, due);
                return Ok(());
            }
            Place::Node(_) | Place::Nowhere { .. } => {}
        }
        let (now, establish) = (self.now, std::sync::Arc::clone(&self.client.establish));
        let Some(its) = self.client.server(server) else { return Ok(()) };
        let Some(open) = its.sockets.get_mut(&socket) else { return Ok(()) };
        let is_opening = !open.is_open;
        let message = open.inbox.pop_front();
        if open.line == Line::Check && matches!(message, Some(Message::Reply { .. })) {
            its.checks.answered(now);
        }
        let input = match message {
            None => return Ok(()),
            Some(Message::Broken(error)) => Input::SocketFailed { server, socket, error },
            Some(Message::Reply { document, .. }) if is_opening => {
                open.is_open = true;
                let round_trip = now.saturating_since(open.opened);
                match ConnectionDescription::from_reply(&document, &establish) {
                    Ok(hello) => {
                        let hello = Box::new(hello);
                        Input::SocketOpened { server, socket, hello, round_trip }
                    }
                    Err(error) => Input::SocketFailed { server, socket, error },
                }
            }
            Some(Message::Reply { document: reply, more_to_come }) => {
                Input::SocketReplied { server, socket, reply, more_to_come }
            }
        };
        self.feed_client(input)
    }

    /// Each heartbeat that starts has one end.
    pub(super) fn check_heartbeats(
        &mut self,
        server: ServerId,
        address: &ServerAddress,
        event: &Event,
    ) -> Result<(), String> {
        let is_beating = self.beating.contains(&server);
        let (before, after) = match event {
            Event::ServerHeartbeatStarted { .. } => (false, true),
            Event::ServerHeartbeatSucceeded { .. } => {
                self.client.judge.checked(address)?;
                (true, false)
            }
            Event::ServerHeartbeatFailed { .. } => (true, false),
            Event::ServerDescriptionChanged { .. } | _ => (is_beating, is_beating),
        };
        if is_beating != before {
            return Err(format!("{address}: {} out of order", event.name()));
        }
        let _ = if after { self.beating.insert(server) } else { self.beating.remove(&server) };
        Ok(())
    }
}

/// The server's end.
impl World<'_> {
    /// A request has arrived where the server should be.
    pub(super) fn request_arrives(
        &mut self,
        server: ServerId,
        socket: SocketId,
        exchange: u64,
    ) -> Result<(), String> {
        let place = self.place(server);
        let Some(its) = self.client.server(server) else { return Ok(()) };
        let Some(open) = its.sockets.get(&socket).filter(|it| it.exchange == exchange) else {
            return Ok(());
        };
        let (is_opening, asked) = (open.served_by.is_none(), open.asked);
        let node = match place {
            Place::Node(node) => node,
            Place::Nowhere { error: Some(error) } => {
                self.push(server, socket, Message::Broken(error));
                return Ok(());
            }
            Place::Nowhere { error: None } => return Ok(()),
        };
        if self.cluster.is_cut(node) {
            self.hold(node, Due::Request { server, socket, exchange });
            return Ok(());
        }
        let Some(there) = self.cluster.node(node) else { return Ok(()) };
        let is_other = open.served_by.is_some_and(|process| process != there.process);
        let refuses_second = there.wrong == Some(WrongAnswer::ResetsSecondHello) && !is_opening;
        let (condition, process) = (there.condition, there.process);
        match condition {
            Condition::Down if is_opening => {
                let error = ConnectionError::network(Stage::Tcp, "connection refused");
                self.push(server, socket, Message::Broken(error));
            }
            Condition::Down | Condition::Resets => self.reset(server, socket),
            Condition::Stalled => self.hold(node, Due::Request { server, socket, exchange }),
            Condition::Up | Condition::ShutsDown if is_other || refuses_second => {
                self.reset(server, socket);
            }
            Condition::Up | Condition::ShutsDown => {
                if let Some(open) =
                    self.client.server(server).and_then(|it| it.sockets.get_mut(&socket))
                {
                    open.served_by = Some(process);
                }
                self.respond_or_wait(server, socket, node, asked);
            }
        }
        Ok(())
    }

    fn respond_or_wait(&mut self, server: ServerId, socket: SocketId, node: usize, asked: Asked) {
        let Some(there) = self.cluster.node(node) else { return };
        let waits =
            there.wrong != Some(WrongAnswer::AnswersAtOnce) && there.kind != NodeKind::LoadBalancer;
        match asked {
            Asked::Awaited { known } if waits && there.topology_version() == Some(known) => {
                self.await_change(server, socket);
            }
            Asked::Awaited { .. } | Asked::Hello => self.respond(server, socket, node),
        }
    }

    /// The server answers when its state changes, or `heartbeatFrequencyMS` later.
    fn await_change(&mut self, server: ServerId, socket: SocketId) {
        let Some(its) = self.client.server(server) else { return };
        let Some(open) = its.sockets.get_mut(&socket) else { return };
        open.is_awaiting = true;
        let exchange = open.exchange;
        self.plan_in(self.plan.heartbeat, Due::AwaitEnds { server, socket, exchange });
    }

    pub(super) fn await_ends(&mut self, server: ServerId, socket: SocketId, exchange: u64) {
        let Place::Node(node) = self.place(server) else { return };
        let awaits = |open: &MonitorSocket| open.is_awaiting && open.exchange == exchange;
        let its = self.client.server(server);
        if its.is_some_and(|its| its.sockets.get(&socket).is_some_and(awaits)) {
            self.respond_if_running(server, socket, node);
        }
    }

    /// The state of a server has changed.
    pub(super) fn answer_awaiting(&mut self, node: usize) {
        for (server, socket) in self.sockets_to(node, |open| open.is_awaiting) {
            self.respond_if_running(server, socket, node);
        }
    }

    fn respond_if_running(&mut self, server: ServerId, socket: SocketId, node: usize) {
        let condition = self.cluster.node(node).map(|there| there.condition);
        if matches!(condition, Some(Condition::Up | Condition::ShutsDown)) {
            self.respond(server, socket, node);
        }
    }

    fn respond(&mut self, server: ServerId, socket: SocketId, node: usize) {
        let Some(there) = self.cluster.node(node) else { return };
        let streams = there.streams && there.wrong != Some(WrongAnswer::AnswersAtOnce);
        let Some(its) = self.client.server(server) else { return };
        let Some(open) = its.sockets.get_mut(&socket) else { return };
        let more_to_come = streams && matches!(open.asked, Asked::Awaited { .. });
        open.exchange += 1;
        open.is_awaiting = false;
        let number = open.number;
        let document = self.cluster.hello(node, number);
        self.push(server, socket, Message::Reply { document, more_to_come });
        if more_to_come {
            self.await_change(server, socket);
        }
    }

    pub(super) fn reset(&mut self, server: ServerId, socket: SocketId) {
        let error = ConnectionError::network(Stage::Hello, "reset by the peer");
        self.push(server, socket, Message::Broken(error));
    }

    fn push(&mut self, server: ServerId, socket: SocketId, message: Message) {
        let after = self.time(self.plan.latency);
        let now = self.now;
        let Some(its) = self.client.server(server) else { return };
        let Some(open) = its.sockets.get_mut(&socket) else { return };
        open.inbox.push_back(message);
        open.arrives = open.arrives.max(now + after);
        let after = open.arrives.saturating_since(now);
        self.plan_in(after, Due::Message { server, socket });
    }
}

/// What a command of a monitor asks.
fn asked(command: &RawDocument) -> Asked {
    let known = command.get_document("topologyVersion").ok().and_then(|version| {
        let process = version.get_object_id("processId").ok()?.bytes();
        let process = process.get(4..)?.try_into().ok().map(u64::from_be_bytes)?;
        Some((process, version.get_i64("counter").ok()?))
    });
    known.map_or(Asked::Hello, |known| Asked::Awaited { known })
}

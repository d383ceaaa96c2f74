//! Pools, and their connections: established, used, closed.

use std::time::Duration;

use bson::raw::cstr;
use bson::rawdoc;
use cenote_core::connect::IncompatibleServer;
use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_core::pool::{Action, ConnId, Health, Input, WaiterId};
use cenote_core::topology::{ServerId, TopologyKind};

use super::cluster::{Condition, WrongAnswer, process_id};
use super::network::Place;
use super::plan::host;
use super::world::{Due, World};
use crate::lockstep::{self, Tagged};
use crate::simulate::accounting::{Socket, SocketState};
use crate::simulate::coverage::Situation;

/// The machine, and its actions.
impl World<'_> {
    pub(super) fn feed_pool(
        &mut self,
        server: ServerId,
        input: Input<Tagged>,
    ) -> Result<(), String> {
        let faults = self.time_faults();
        let Some(its) = self.client.servers.get_mut(&server) else { return Ok(()) };
        let (random, coverage) = (&mut self.random, &mut self.coverage);
        let at = its.pool_clock.look(&mut self.now, faults, random, coverage);
        self.inputs += 1;
        let is_told = matches!(input, Input::Ready | Input::Clear { .. } | Input::Close);
        if is_told {
            self.story.note(at, || format!("pool of {}: {}", its.address, input.name()));
        }
        let actions = its.subject.feed(at, input)?;
        for action in actions {
            self.act(server, action)?;
        }
        match self.client.server(server) {
            Some(its) => its.accounting.compare(&its.subject.snapshot()),
            None => Ok(()),
        }
    }

    fn act(&mut self, server: ServerId, action: Action<Tagged>) -> Result<(), String> {
        let Some(its) = self.client.server(server) else { return Ok(()) };
        match action {
            Action::StartEstablish { id, .. } => {
                its.accounting.start(id)?;
                self.open(server, id);
                Ok(())
            }
            Action::AbortEstablish { id } => its.accounting.abort(id),
            Action::Deliver { waiter, outcome } => {
                self.delivered(server, WaiterId(waiter), &outcome)
            }
            Action::CloseSocket { id, conn } => its.accounting.close(id, conn),
            Action::Interrupt { id } => {
                its.accounting.expect_used(id)?;
                self.coverage.count(Situation::Interrupted);
                self.interrupt(server, id.number());
                Ok(())
            }
            Action::StartDrain { id, .. } | Action::AbortDrain { id } => {
                Err(format!("{id} is drained, but no caller of these worlds leaves a reply behind"))
            }
            Action::ReportLeak { .. } | Action::ReportUnanswered { .. } | Action::EmitEvent(_) => {
                Ok(())
            }
        }
    }

    fn open(&mut self, server: ServerId, id: ConnId) {
        let connection = id.number();
        let takes = self.time(self.plan.latency) * 3;
        self.plan_in(takes, Due::Opened { server, connection });
        self.plan_in(self.plan.connect_timeout, Due::OpeningTimesOut { server, connection });
    }

    fn interrupt(&mut self, server: ServerId, connection: u64) {
        let its = self.client.server(server);
        let socket = its.and_then(|its| its.accounting.socket_mut(connection));
        let Some(socket) = socket else { return };
        socket.is_dead = true;
        let use_number = socket.use_number;
        self.plan_in(Duration::ZERO, Due::Finish { server, connection, use_number });
    }

    fn socket(&mut self, server: ServerId, connection: u64) -> Option<Socket> {
        self.client.server(server)?.accounting.socket(connection)
    }
}

/// Establishing.
impl World<'_> {
    /// The server has answered everything, or will never.
    pub(super) fn opened(&mut self, server: ServerId, connection: u64) -> Result<(), String> {
        let Some(socket) = self.socket(server, connection) else { return Ok(()) };
        let Some(is_wanted) = socket.is_wanted_open() else { return Ok(()) };
        if !is_wanted {
            return self.drop_unopened(server, connection);
        }
        match self.establish(server, connection, &socket) {
            Established::Held => Ok(()),
            Established::Failed(error) => self.fail_to_open(server, connection, &error),
            Established::Done { service } => {
                let service = service.map(lockstep::service);
                let hello = Input::Handshaken { id: socket.id, service, clears_at_hello: None };
                self.feed_pool(server, hello)?;
                let conn = self.client.server(server).and_then(|it| it.accounting.open(connection));
                let Some(conn) = conn else { return Ok(()) };
                self.feed_pool(server, Input::EstablishSucceeded { id: socket.id, conn })
            }
        }
    }

    fn establish(&mut self, server: ServerId, connection: u64, socket: &Socket) -> Established {
        let failed = |error| Established::Failed(error);
        let node = match self.place(server) {
            Place::Node(node) => node,
            Place::Nowhere { error: Some(error) } => return failed(error),
            Place::Nowhere { error: None } => return Established::Held,
        };
        if self.is_silent(node) {
            self.hold(node, Due::Opened { server, connection });
            return Established::Held;
        }
        let service = self.draw_service();
        let Some(there) = self.cluster.node(node) else { return Established::Held };
        let network = |stage, what: &str| failed(ConnectionError::network(stage, what));
        match there.condition {
            Condition::Down => network(Stage::Tcp, "connection refused"),
            Condition::Resets => network(Stage::Hello, "reset by the peer"),
            Condition::ShutsDown if service.is_none() => {
                failed(refusal(Stage::Authentication, 91, there.topology_version()))
            }
            Condition::Up | Condition::ShutsDown | Condition::Stalled => match there.wrong {
                // Behind a load balancer it is not known yet which service that was.
                _ if socket.is_dead && service.is_some() => {
                    network(Stage::Hello, "reset by the peer")
                }
                _ if socket.is_dead => network(Stage::Authentication, "reset by the peer"),
                Some(WrongAnswer::RefusesLogins) => {
                    failed(refusal(Stage::Authentication, 18, None))
                }
                Some(WrongAnswer::Refuses) => failed(refusal(Stage::Hello, 1234, None)),
                Some(WrongAnswer::TooOld | WrongAnswer::TooNew) => {
                    let address = host(0).parse().expect("an address");
                    let source = IncompatibleServer::TooOld { address, max_wire_version: 6 };
                    let error =
                        ConnectionError::configuration(Stage::Hello, "another wire version");
                    failed(error.with_source(source))
                }
                Some(_) | None => Established::Done { service },
            },
        }
    }

    fn draw_service(&mut self) -> Option<u8> {
        let services = u64::from(self.plan.deployment.services());
        (services != 0).then(|| u8::try_from(self.random.below(services)).unwrap_or_default())
    }

    pub(super) fn opening_times_out(
        &mut self,
        server: ServerId,
        connection: u64,
    ) -> Result<(), String> {
        match self.socket(server, connection).map(|socket| socket.state) {
            Some(SocketState::Opening { .. }) => {
                let after = self.plan.connect_timeout;
                let error = ConnectionError::timeout(Stage::Hello, after);
                self.fail_to_open(server, connection, &error)
            }
            Some(SocketState::Aborted) => self.drop_unopened(server, connection),
            Some(
                SocketState::Idle
                | SocketState::Used { .. }
                | SocketState::Draining
                | SocketState::DrainAborted
                | SocketState::Inherited { .. },
            )
            | None => Ok(()),
        }
    }

    fn fail_to_open(
        &mut self,
        server: ServerId,
        connection: u64,
        error: &ConnectionError,
    ) -> Result<(), String> {
        let Some(socket) = self.socket(server, connection) else { return Ok(()) };
        self.report(server, socket.id, error)?;
        // The clear may have aborted it; then this answer is too late, and makes no difference.
        self.client
            .server(server)
            .into_iter()
            .for_each(|it| it.accounting.drop_unopened(connection));
        let (cause, overloaded) = (self.now.as_nanos(), error.is_overload());
        self.feed_pool(server, Input::EstablishFailed { id: socket.id, cause, overloaded })?;
        self.forget_ended(server)
    }

    fn drop_unopened(&mut self, server: ServerId, connection: u64) -> Result<(), String> {
        self.client
            .server(server)
            .into_iter()
            .for_each(|it| it.accounting.drop_unopened(connection));
        self.forget_ended(server)
    }
}

/// What becomes of a connection that is being established.
enum Established {
    /// No answer, for now.
    Held,
    Failed(ConnectionError),
    Done {
        service: Option<u8>,
    },
}

/// Using.
impl World<'_> {
    /// How long the use takes that begins now.
    pub(super) fn use_connection(&mut self, server: ServerId, connection: u64) {
        let Some(socket) = self.socket(server, connection) else { return };
        let use_number = socket.use_number;
        let is_silent = matches!(self.place(server), Place::Node(node) if self.is_silent(node));
        let takes = self.time(self.plan.work);
        let takes = if is_silent { self.plan.socket_timeout } else { takes };
        self.plan_in(takes, Due::Finish { server, connection, use_number });
    }

    /// The operation ends, and its caller checks the connection in.
    pub(super) fn finish(
        &mut self,
        server: ServerId,
        connection: u64,
        use_number: u64,
    ) -> Result<(), String> {
        let Some(socket) = self.socket(server, connection) else { return Ok(()) };
        let SocketState::Used { caller } = socket.state else { return Ok(()) };
        if socket.use_number != use_number {
            return Ok(());
        }
        let error = self.end_of_operation(server, caller, &socket);
        self.come_again(caller, error.is_none());
        let cause = self.now.as_nanos();
        let health = match &error {
            Some(error) if !error.leaves_connection_healthy() => Health::Errored(cause),
            Some(_) | None => Health::Healthy,
        };
        if let Some(error) = &error {
            self.report(server, socket.id, error)?;
        }
        let its = self.client.server(server);
        let given_back = its.and_then(|it| it.accounting.give_back(connection));
        let Some((id, conn)) = given_back else { return Ok(()) };
        self.feed_pool(server, Input::CheckedIn { id, conn, health })?;
        self.forget_ended(server)
    }

    /// How the operation fails, by what its server is now.
    fn end_of_operation(
        &mut self,
        server: ServerId,
        caller: u32,
        socket: &Socket,
    ) -> Option<ConnectionError> {
        let network = ConnectionError::network(Stage::Operation, "reset by the peer");
        let Place::Node(node) = self.place(server) else { return Some(network) };
        if socket.is_dead {
            self.coverage.count(Situation::BrokenInUse);
            return Some(network);
        }
        if self.is_silent(node) {
            self.coverage.count(Situation::SilentInUse);
            return Some(ConnectionError::timeout(Stage::Operation, self.plan.socket_timeout));
        }
        let (is_read, is_recovering) = (self.reads(caller), self.is_recovering);
        let tells_version = is_recovering || !self.random.one_in(4);
        let there = self.cluster.node(node)?;
        let version = there.topology_version().filter(|_| tells_version);
        let refused = |code| Some(refusal(Stage::Operation, code, version));
        match there.condition {
            Condition::ShutsDown => {
                self.coverage.count(Situation::ToldOfShutdown);
                refused(91)
            }
            Condition::Up | Condition::Down | Condition::Stalled | Condition::Resets => {
                // The one server of such a topology is used whatever it is.
                let is_single = self.client.state.description().kind == TopologyKind::Single;
                if is_single || there.serves(is_read) {
                    return None;
                }
                self.coverage.count(Situation::ToldOfStepDown);
                refused(if is_read { 13_436 } else { 10_107 })
            }
        }
    }

    pub(super) fn peer_closes(&mut self, server: ServerId, connection: u64) -> Result<(), String> {
        match self.socket(server, connection) {
            Some(Socket { state: SocketState::Idle, id, .. }) => {
                self.coverage.count(Situation::ClosedIdle);
                let cause = self.now.as_nanos();
                self.feed_pool(server, Input::IdleClosedByPeer { id, cause })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The server answers with an error that has this code.
fn refusal(stage: Stage, code: i32, version: Option<(u64, i64)>) -> ConnectionError {
    let mut reply = rawdoc! { "ok": 0, "errmsg": "not now", "code": code };
    if let Some((process, counter)) = version {
        let version = rawdoc! { "processId": process_id(process), "counter": counter };
        reply.append(cstr!("topologyVersion"), version);
    }
    match CommandError::from_reply(&reply) {
        Some(error) => ConnectionError::command(stage, error),
        None => ConnectionError::protocol(stage, "a refusal that is none"),
    }
}

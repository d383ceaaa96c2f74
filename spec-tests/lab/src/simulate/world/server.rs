//! The server and its monitor. Where connections have no conversations, timers say what becomes of them.

use std::time::Duration;

use cenote_core::pool::{ConnId, Input, ServiceId, Status};

use super::{Due, FAST, World};
use crate::lockstep;
use crate::simulate::accounting::{Socket, SocketState};
use crate::simulate::coverage::Situation;
use crate::simulate::latency::Latency;
use crate::simulate::trouble::Trouble;

impl World<'_> {
    /// The server replies to hello. Behind a load balancer, the pool has to be told which service it is.
    pub(super) fn greeted(&mut self, connection: u64) -> Result<(), String> {
        let is_heard = !matches!(
            self.trouble,
            Some(
                Trouble::Refuses | Trouble::Resets | Trouble::TalksNonsense | Trouble::IsOverloaded
            )
        );
        if !is_heard {
            return Ok(());
        }
        self.greet(connection)
    }

    /// The connection is established, or fails.
    pub(super) fn opened(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        let Some(is_wanted) = socket.is_wanted_open() else { return Ok(()) };
        // A shell that aborts at once never answers; a slower one does.
        if !is_wanted && (self.is_recovering || self.random.flip()) {
            self.accounting.drop_unopened(connection);
            return Ok(());
        }
        if !is_wanted {
            self.coverage.count(Situation::LateAnswer);
        }
        if let Some(trouble) = self.trouble.filter(|trouble| trouble.prevents_opening()) {
            let is_login = trouble == Trouble::RefusesLogins;
            let (login, other) = (Situation::LoginFailed, Situation::OpeningFailed);
            self.coverage.count(if is_login { login } else { other });
            return self.fail_to_open(connection, trouble != Trouble::IsOverloaded);
        }
        self.greet(connection)?;
        self.established(connection)
    }

    /// The connection is established, whether the pool still wants it or not.
    pub(in crate::simulate) fn established(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        let is_wanted = matches!(socket.state, SocketState::Opening { .. });
        let Some(conn) = self.accounting.open(connection) else { return Ok(()) };
        self.feed(Input::EstablishSucceeded { id: socket.id, conn })?;
        self.expect_gone_unless(is_wanted, connection)
    }

    pub(super) fn opening_times_out(&mut self, connection: u64) -> Result<(), String> {
        match self.accounting.socket(connection).map(|socket| socket.state) {
            Some(SocketState::Opening { .. }) => {
                self.coverage.count(Situation::OpeningTimedOut);
                self.hang_up(connection);
                self.fail_to_open(connection, true)
            }
            Some(SocketState::Aborted) => {
                self.hang_up(connection);
                self.accounting.drop_unopened(connection);
                Ok(())
            }
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

    /// Monitors mark pools ready and clear them. Behind a load balancer there is no monitor, and the
    /// application marks the pool ready.
    pub(super) fn heartbeat(&mut self) -> Result<(), String> {
        if self.is_closed {
            return Ok(());
        }
        let after = self.time(Latency::Fixed(self.plan.heartbeat));
        self.plan_in(after, Due::Heartbeat);
        let is_gone = self.trouble.is_some_and(Trouble::prevents_opening);
        let status = self.subject.snapshot().status;
        match status {
            Status::Paused if !is_gone => self.feed(Input::Ready),
            // Each failed check clears the pool, even if it is paused already (CLR-07).
            Status::Ready | Status::Paused if is_gone && !self.is_balanced() => {
                let interrupt = self.trouble == Some(Trouble::Stalls) || self.random.flip();
                self.clear(None, interrupt)
            }
            Status::Paused | Status::Ready | Status::Closed => Ok(()),
        }
    }

    /// The shell notices that the peer has closed an idle connection.
    pub(super) fn peer_closes(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        match socket.state {
            SocketState::Idle | SocketState::Used { .. } => {
                if socket.state == SocketState::Idle {
                    self.coverage.count(Situation::ClosedIdle);
                }
                let cause = self.now.as_nanos();
                self.feed(Input::IdleClosedByPeer { id: socket.id, cause })
            }
            // A drain notices by itself.
            SocketState::Opening { .. }
            | SocketState::Aborted
            | SocketState::Draining
            | SocketState::DrainAborted
            | SocketState::Inherited { .. } => Ok(()),
        }
    }

    /// Credentials changed, and connections retire; or the process is going to be frozen, and releases them. In turn.
    pub(super) fn retire(&mut self) -> Result<(), String> {
        let Some(every) = self.plan.retire_every.filter(|_| !self.is_recovering) else {
            return Ok(());
        };
        self.plan_in(every, Due::Retire);
        self.releases = !self.releases;
        if self.releases {
            self.coverage.count(Situation::ReleasesIdle);
            self.feed(Input::ReleaseIdle)
        } else {
            self.coverage.count(Situation::CredentialsChange);
            self.feed(Input::RetireConnections)
        }
    }

    pub(super) fn clear(
        &mut self,
        service: Option<ServiceId>,
        interrupt: bool,
    ) -> Result<(), String> {
        if self.is_balanced() != service.is_some() {
            return Ok(());
        }
        let interrupt = interrupt && service.is_none();
        self.feed(Input::Clear { cause: self.now.as_nanos(), interrupt, service })
    }

    /// Behind a load balancer, any of its services replies.
    fn greet(&mut self, connection: u64) -> Result<(), String> {
        let services = u64::from(self.plan.services);
        let index = (services != 0).then(|| {
            let index = u8::try_from(self.random.below(services.max(1))).unwrap_or_default();
            self.first_service.wrapping_add(index)
        });
        let Some(socket) = self.accounting.socket_mut(connection) else { return Ok(()) };
        if socket.state != (SocketState::Opening { is_greeted: false }) {
            return Ok(());
        }
        socket.service = index;
        self.handshaken(connection, index.map(lockstep::service))
    }

    /// The reply to hello may have been sent before an abort arrived.
    pub(in crate::simulate) fn handshaken(
        &mut self,
        connection: u64,
        service: Option<ServiceId>,
    ) -> Result<(), String> {
        let Some(socket) = self.accounting.socket_mut(connection) else { return Ok(()) };
        let id = socket.id;
        if socket.state != SocketState::Aborted {
            socket.state = SocketState::Opening { is_greeted: true };
        }
        self.feed(Input::Handshaken { id, service, clears_at_hello: None })
    }

    pub(super) fn service_of(&self, socket: &Socket) -> Option<ServiceId> {
        let known = || self.subject.pool().service_of(socket.id);
        socket.service.map(lockstep::service).or_else(known)
    }

    /// SDAM sees the error first and may clear the pool; behind a load balancer, only a known service.
    pub(in crate::simulate) fn fail_to_open(
        &mut self,
        connection: u64,
        clears: bool,
    ) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        let is_open = matches!(socket.state, SocketState::Opening { .. });
        if is_open && clears && !self.is_recovering && !self.subject.pool().is_stale(socket.id) {
            self.clear(self.service_of(&socket), false)?;
        }
        // The clear may have aborted it; then this answer is too late, and makes no difference.
        self.accounting.drop_unopened(connection);
        let (cause, overloaded) = (self.now.as_nanos(), !clears);
        self.feed(Input::EstablishFailed { id: socket.id, cause, overloaded })
    }

    pub(super) fn expect_gone_unless(
        &self,
        is_wanted: bool,
        connection: u64,
    ) -> Result<(), String> {
        match self.accounting.socket(connection) {
            Some(Socket { id, .. }) if !is_wanted => {
                Err(format!("{id} was aborted, and its payload is kept"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Schedules when the connection will be established, or when that fails.
    pub(super) fn start_opening(&mut self, id: ConnId) {
        let connection = id.number();
        let allowed = self.plan.connect_timeout;
        if self.wire.is_some() {
            self.start_conversation(connection);
            return self.plan_in(allowed, Due::OpeningTimesOut { connection });
        }
        let takes = self.time(self.plan.open);
        let hello = takes / 2;
        let takes = match self.trouble {
            Some(Trouble::Stalls) => Duration::from_secs(3600),
            Some(Trouble::IsSlow) => takes * 10,
            Some(Trouble::Refuses | Trouble::IsOverloaded) => takes / 10,
            _ => takes,
        };
        self.plan_in(hello.min(takes), Due::Greeted { connection });
        self.plan_in(takes, Due::Opened { connection });
        if allowed < takes {
            self.plan_in(allowed, Due::OpeningTimesOut { connection });
        }
    }

    /// A connection that is being opened succeeds or fails soon, as all faults have ended.
    pub(super) fn finish_opening(&mut self, connection: u64) {
        if self.wire.is_some() {
            return self.plan_in(self.plan.connect_timeout, Due::OpeningTimesOut { connection });
        }
        self.plan_in(FAST, Due::Greeted { connection });
        self.plan_in(FAST, Due::Opened { connection });
    }
}

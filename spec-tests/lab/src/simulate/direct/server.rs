//! The server and its monitor.

use std::time::Duration;

use cenote_core::pool::{Input, ServiceId, Status};

use super::{Due, Socket, SocketState, Trouble, World, service_of};
use crate::lockstep;
use crate::simulate::coverage::Situation;
use crate::simulate::latency::Latency;
use crate::simulate::world;

impl World<'_> {
    /// The server replies to hello. Behind a load balancer, the pool has to be told which service it is.
    pub(super) fn greeted(&mut self, connection: u64) -> Result<(), String> {
        let is_heard = !matches!(
            self.transport.trouble,
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
        if let Some(trouble) = self.transport.trouble.filter(|trouble| trouble.prevents_opening()) {
            let is_login = trouble == Trouble::RefusesLogins;
            let (login, other) = (Situation::LoginFailed, Situation::OpeningFailed);
            self.coverage.count(if is_login { login } else { other });
            return self.fail_to_open(connection, trouble != Trouble::IsOverloaded);
        }
        self.greet(connection)?;
        let Some(conn) = self.accounting.open(connection) else { return Ok(()) };
        self.feed(Input::EstablishSucceeded { id: socket.id, conn })?;
        self.expect_gone_unless(is_wanted, connection)
    }

    pub(super) fn opening_times_out(&mut self, connection: u64) -> Result<(), String> {
        match self.accounting.socket(connection).map(|socket| socket.state) {
            Some(SocketState::Opening { .. }) => {
                self.coverage.count(Situation::OpeningTimedOut);
                self.fail_to_open(connection, true)
            }
            Some(SocketState::Aborted) => {
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
        let is_gone = self.transport.trouble.is_some_and(Trouble::prevents_opening);
        let status = self.subject.snapshot().status;
        match status {
            Status::Paused if !is_gone => self.feed(Input::Ready),
            // Each failed check clears the pool, even if it is paused already (CLR-07).
            Status::Ready | Status::Paused if is_gone && !self.is_balanced() => {
                let interrupt =
                    self.transport.trouble == Some(Trouble::Stalls) || self.random.flip();
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
        if !is_wanted && (self.is_recovering || self.transport.late.flip()) {
            self.accounting.drop_drain(connection);
            return Ok(());
        }
        let breaks = !self.is_recovering && self.transport.late.one_in(6);
        if socket.is_dead || breaks {
            self.coverage.count(Situation::DrainFailed);
            self.accounting.drop_drain(connection);
            return self.feed(Input::DrainFailed { id: socket.id, cause: self.now.as_nanos() });
        }
        if is_wanted && !self.is_recovering && self.transport.late.one_in(3) {
            self.plan_drain(connection);
            return self.feed(Input::DrainProgress { id: socket.id });
        }
        self.coverage.count(Situation::Drained);
        let Some(conn) = self.accounting.drained(connection) else { return Ok(()) };
        self.feed(Input::DrainSucceeded { id: socket.id, conn })?;
        self.expect_gone_unless(is_wanted, connection)
    }

    /// Plans when a late reply comes; some never do.
    pub(super) fn plan_drain(&mut self, connection: u64) {
        let late = &mut self.transport.late;
        let after = match late.below(8) {
            _ if self.is_recovering => world::FAST,
            0 => Duration::from_secs(3600),
            1 => Duration::from_millis(late.between(1, 5_000)),
            _ => self.plan.work.draw(late),
        };
        self.plan_in(after, Due::Drained { connection });
    }

    /// Credentials changed, and connections retire; or the process is going to be frozen, and releases them. In turn.
    pub(super) fn retire(&mut self) -> Result<(), String> {
        let Some(every) = self.plan.transport.retire_every.filter(|_| !self.is_recovering) else {
            return Ok(());
        };
        self.plan_in(every, Due::Retire);
        self.transport.releases = !self.transport.releases;
        if self.transport.releases {
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

    fn greet(&mut self, connection: u64) -> Result<(), String> {
        let services = u64::from(self.plan.transport.services);
        let index = (services != 0).then(|| {
            let index = u8::try_from(self.random.below(services.max(1))).unwrap_or_default();
            self.transport.first_service.wrapping_add(index)
        });
        let Some(socket) = self.accounting.socket_mut(connection) else { return Ok(()) };
        if socket.state != (SocketState::Opening { is_greeted: false }) {
            return Ok(());
        }
        socket.state = SocketState::Opening { is_greeted: true };
        socket.service = index;
        let id = socket.id;
        self.feed(Input::Handshaken {
            id,
            service: index.map(lockstep::service),
            clears_at_hello: None,
        })
    }

    /// SDAM sees the error first and may clear the pool; behind a load balancer, only a known service.
    fn fail_to_open(&mut self, connection: u64, clears: bool) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        let is_open = matches!(socket.state, SocketState::Opening { .. });
        if is_open && clears && !self.is_recovering && !self.subject.pool().is_stale(socket.id) {
            self.clear(service_of(&socket), false)?;
        }
        // The clear may have aborted it; then this answer is too late, and makes no difference.
        self.accounting.drop_unopened(connection);
        let (cause, overloaded) = (self.now.as_nanos(), !clears);
        self.feed(Input::EstablishFailed { id: socket.id, cause, overloaded })
    }

    fn expect_gone_unless(&self, is_wanted: bool, connection: u64) -> Result<(), String> {
        match self.accounting.socket(connection) {
            Some(Socket { id, .. }) if !is_wanted => {
                Err(format!("{id} was aborted, and its payload is kept"))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn reset_connections(&mut self) {
        let all: Vec<_> = self.accounting.sockets().copied().collect();
        for socket in all {
            let connection = socket.id.number();
            if let Some(socket) = self.accounting.socket_mut(connection) {
                socket.is_dead = true;
            }
            match socket.state {
                SocketState::Idle => self.plan_in(Duration::ZERO, Due::PeerCloses { connection }),
                SocketState::Used { .. } | SocketState::Inherited { .. } => {
                    let due = world::Due::Finish { connection, use_number: socket.use_number };
                    self.plan_in(Duration::ZERO, due);
                }
                SocketState::Draining | SocketState::DrainAborted => {
                    self.plan_in(Duration::ZERO, Due::Drained { connection });
                }
                SocketState::Opening { .. } | SocketState::Aborted => {
                    self.plan_in(Duration::ZERO, Due::Opened { connection });
                }
            }
        }
    }

    /// The server closes all idle connections; the shell notices some of it late.
    pub(super) fn close_idle(&mut self) {
        let all: Vec<_> = self.accounting.sockets().copied().collect();
        for socket in all {
            if socket.state == SocketState::Idle {
                let after = self.plan.work.draw(&mut self.random);
                self.plan_in(after, Due::PeerCloses { connection: socket.id.number() });
            }
        }
    }
}

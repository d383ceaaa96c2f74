//! The server, its monitor, and the way to it.

use std::time::Duration;

use cenote_core::pool::{ConnId, Input, Instant, ServiceId, Status};

use super::{Due, Encounter, Latency, Place, Socket, Trouble, World, service_of};
use crate::lockstep;

impl World<'_> {
    /// The shell opens a connection: when it will be open, or when it will not.
    pub(super) fn open(&mut self, id: ConnId, deadline: Option<Instant>) {
        let connection = id.number();
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
        let allowed = deadline.map(|deadline| deadline.saturating_since(self.now));
        let allowed = allowed.unwrap_or(Duration::MAX).min(self.plan.connect_timeout);
        if allowed < takes {
            self.plan_in(allowed, Due::OpeningTimesOut { connection });
        }
    }

    /// Hello is answered. Behind a load balancer the pool has to know by whom.
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

    /// The connection is open, or has failed.
    pub(super) fn opened(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        let is_wanted = match socket.place {
            Place::Opening { .. } => true,
            Place::Aborted => false,
            Place::Idle | Place::Used { .. } | Place::Inherited { .. } => return Ok(()),
        };
        // A shell that stops at once gives no answer any more; one that is slower does.
        if !is_wanted && (self.is_calm || self.chance.flip()) {
            self.books.drop_unopened(connection);
            return Ok(());
        }
        if !is_wanted {
            self.met.count(Encounter::LateAnswer);
        }
        if let Some(trouble) = self.trouble.filter(|trouble| trouble.prevents_opening()) {
            let is_login = trouble == Trouble::RefusesLogins;
            let (login, other) = (Encounter::LoginFailed, Encounter::OpeningFailed);
            self.met.count(if is_login { login } else { other });
            return self.fail_to_open(connection, trouble != Trouble::IsOverloaded);
        }
        self.greet(connection)?;
        let Some(conn) = self.books.open(connection) else { return Ok(()) };
        self.feed(Input::EstablishSucceeded { id: socket.id, conn })?;
        self.expect_gone_unless(is_wanted, connection)
    }

    pub(super) fn opening_times_out(&mut self, connection: u64) -> Result<(), String> {
        match self.books.socket(connection).map(|socket| socket.place) {
            Some(Place::Opening { .. }) => {
                self.met.count(Encounter::OpeningTimedOut);
                self.fail_to_open(connection, true)
            }
            Some(Place::Aborted) => {
                self.books.drop_unopened(connection);
                Ok(())
            }
            Some(Place::Idle | Place::Used { .. } | Place::Inherited { .. }) | None => Ok(()),
        }
    }

    /// Monitors mark pools ready, and clear them. Load balancers have none: whoever sets one up says
    /// that it is ready.
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
            // Each check that fails clears, also a pool that was cleared before (CLR-07).
            Status::Ready | Status::Paused if is_gone && !self.is_balanced() => {
                let interrupt = self.trouble == Some(Trouble::Stalls) || self.chance.flip();
                self.clear(None, interrupt)
            }
            Status::Paused | Status::Ready | Status::Closed => Ok(()),
        }
    }

    /// One trouble after the other, with quiet times between.
    pub(super) fn next_trouble(&mut self) -> Result<(), String> {
        if self.is_calm {
            return Ok(());
        }
        let after = self.chance.time(self.plan.trouble_time);
        self.plan_in(after, Due::Trouble);
        self.trouble = match self.trouble {
            Some(_) => None,
            None => self.chance.pick(&self.plan.troubles),
        };
        if let Some(trouble) = self.trouble {
            self.met.count(trouble.encounter());
        }
        match self.trouble {
            Some(Trouble::Resets) => self.reset_connections(),
            Some(Trouble::Vanishes) => {
                self.books.sockets_mut().for_each(|socket| socket.is_dead = true);
                Ok(())
            }
            Some(Trouble::ClosesIdle) => {
                self.close_idle();
                Ok(())
            }
            Some(
                Trouble::Refuses
                | Trouble::Stalls
                | Trouble::IsSlow
                | Trouble::TalksNonsense
                | Trouble::RefusesLogins
                | Trouble::IsOverloaded
                | Trouble::StepsDown,
            )
            | None => Ok(()),
        }
    }

    /// The end of an idle connection is seen, at whatever moment.
    pub(super) fn peer_closes(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        match socket.place {
            Place::Idle | Place::Used { .. } => {
                if socket.place == Place::Idle {
                    self.met.count(Encounter::ClosedIdle);
                }
                let cause = self.now.as_nanos();
                self.feed(Input::IdleClosedByPeer { id: socket.id, cause })
            }
            Place::Opening { .. } | Place::Aborted | Place::Inherited { .. } => Ok(()),
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
        let services = u64::from(self.plan.services);
        let index = (services != 0).then(|| {
            let index = u8::try_from(self.chance.below(services.max(1))).unwrap_or_default();
            self.first_service.wrapping_add(index)
        });
        let Some(socket) = self.books.socket_mut(connection) else { return Ok(()) };
        if socket.place != (Place::Opening { is_greeted: false }) {
            return Ok(());
        }
        socket.place = Place::Opening { is_greeted: true };
        socket.service = index;
        let id = socket.id;
        self.feed(Input::Handshaken { id, service: index.map(lockstep::service) })
    }

    /// SDAM sees it first, which may clear; behind a load balancer only a service that is known.
    fn fail_to_open(&mut self, connection: u64, clears: bool) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        let is_open = matches!(socket.place, Place::Opening { .. });
        if is_open && clears && !self.is_calm && !self.subject.pool().is_stale(socket.id) {
            self.clear(service_of(socket), false)?;
        }
        // The clear may have given it up; a late answer is as good as none.
        self.books.drop_unopened(connection);
        self.feed(Input::EstablishFailed { id: socket.id, cause: self.now.as_nanos() })
    }

    fn expect_gone_unless(&self, is_wanted: bool, connection: u64) -> Result<(), String> {
        match self.books.socket(connection) {
            Some(Socket { id, .. }) if !is_wanted => {
                Err(format!("{id} was given up, and its payload is kept"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn reset_connections(&mut self) -> Result<(), String> {
        let all: Vec<_> = self.books.sockets().copied().collect();
        for socket in all {
            let connection = socket.id.number();
            if let Some(socket) = self.books.socket_mut(connection) {
                socket.is_dead = true;
            }
            match socket.place {
                Place::Idle => self.plan_in(Duration::ZERO, Due::PeerCloses { connection }),
                Place::Used { .. } | Place::Inherited { .. } => {
                    let due = Due::Finish { connection, use_number: socket.use_number };
                    self.plan_in(Duration::ZERO, due);
                }
                Place::Opening { .. } | Place::Aborted => {
                    self.plan_in(Duration::ZERO, Due::Opened { connection });
                }
            }
        }
        Ok(())
    }

    /// Some of it is seen late.
    fn close_idle(&mut self) {
        let all: Vec<_> = self.books.sockets().copied().collect();
        for socket in all {
            if socket.place == Place::Idle {
                let after = self.chance.time(self.plan.work);
                self.plan_in(after, Due::PeerCloses { connection: socket.id.number() });
            }
        }
    }
}

impl Trouble {
    const fn encounter(self) -> Encounter {
        match self {
            Self::Refuses => Encounter::Refuses,
            Self::Stalls => Encounter::Stalls,
            Self::IsSlow => Encounter::IsSlow,
            Self::Resets => Encounter::Resets,
            Self::Vanishes => Encounter::Vanishes,
            Self::TalksNonsense => Encounter::TalksNonsense,
            Self::RefusesLogins => Encounter::RefusesLogins,
            Self::IsOverloaded => Encounter::IsOverloaded,
            Self::ClosesIdle => Encounter::ClosesIdle,
            Self::StepsDown => Encounter::StepsDown,
        }
    }

    /// Whether nobody gets a connection meanwhile.
    const fn prevents_opening(self) -> bool {
        match self {
            Self::Refuses
            | Self::Stalls
            | Self::Resets
            | Self::Vanishes
            | Self::TalksNonsense
            | Self::RefusesLogins
            | Self::IsOverloaded => true,
            Self::IsSlow | Self::ClosesIdle | Self::StepsDown => false,
        }
    }
}

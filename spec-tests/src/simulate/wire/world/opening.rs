//! Clients' ends of links, from being opened until they are dropped.

use std::sync::Arc;
use std::time::Duration;

use bson::RawDocument;
use cenote_core::connect::{EstablishOptions, Nonce};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{self, SocketId};
use cenote_core::pool::{ConnId, Input, Instant};
use cenote_core::wire::Flags;

use super::World;
use super::due::Due;
use crate::simulate::books::Place;
use crate::simulate::met::Encounter;
use crate::simulate::wire::network::{LinkId, Packet, Side};
use crate::simulate::wire::talk::{Break, Said, Talk};

/// The client's end of a link.
#[derive(Debug)]
pub(super) struct Line {
    owner: Owner,
    pub(super) talk: Talk,
    /// How long opening it may take.
    allowed: Duration,
}

/// Whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// A connection of the pool's, by number.
    Pool(u64),
    Monitor(SocketId),
}

impl World<'_> {
    /// The pool has a connection opened.
    pub(super) fn open(&mut self, id: ConnId, deadline: Option<Instant>) {
        let allowed = deadline.map(|deadline| deadline.saturating_since(self.now));
        let allowed = allowed.unwrap_or(Duration::MAX).min(self.plan.connect_timeout);
        let (owner, options) = (Owner::Pool(id.number()), Arc::clone(&self.options));
        let link = self.open_link(owner, options, allowed);
        self.links.insert(id.number(), link);
    }

    pub(super) fn open_link(
        &mut self,
        owner: Owner,
        options: Arc<EstablishOptions>,
        allowed: Duration,
    ) -> LinkId {
        let is_monitor = matches!(owner, Owner::Monitor(_));
        let nonces = [(); 2].map(|()| self.nonce());
        let link = self.network.open();
        let talk = Talk::new(options, nonces, is_monitor);
        self.lines.insert(link, Line { owner, talk, allowed });
        self.send(link, Side::Far, Packet::Open);
        self.plan_in(allowed, Due::OpeningTimesOut { link });
        link
    }

    fn nonce(&mut self) -> Nonce {
        let mut bytes = [0; Nonce::RANDOM_BYTES];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.chance.number().to_le_bytes());
        }
        Nonce::from_random(bytes)
    }

    /// The pool does not want it any more. A shell stops at once, or is too late for that, and answers.
    pub(super) fn abort(&mut self, id: ConnId) -> Result<(), String> {
        self.books.abort(id)?;
        self.met.count(Encounter::Aborted);
        // Nobody in this process opens what was its parent's.
        let is_ours = self.links.get(&id.number()).is_some_and(|it| self.lines.contains_key(it));
        if self.is_calm() || !is_ours || self.chance.flip() {
            self.hang_up_connection(id.number());
            self.books.drop_unopened(id.number());
        }
        Ok(())
    }

    pub(super) fn opening_times_out(&mut self, link: LinkId) -> Result<(), String> {
        match self.lines.get(&link) {
            Some(line) if line.talk.is_opening() => {
                let after = line.allowed;
                self.break_talk(link, Break::TimedOut(after))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A packet has come to a client.
    pub(super) fn arrive_near(&mut self, link: LinkId, packet: Packet) -> Result<(), String> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        let (kit, witness) = (&mut self.kit, &mut self.witness);
        let said = match packet {
            Packet::Open => line.talk.connected(kit, witness),
            Packet::Bytes(bytes) => line.talk.received(&bytes, kit, witness),
            Packet::End => line.talk.broke(Break::End, kit, witness),
            Packet::Refusal => line.talk.broke(Break::Refused, kit, witness),
            Packet::Reset => line.talk.broke(Break::Reset, kit, witness),
        };
        self.heed(link, said)
    }

    pub(super) fn break_talk(&mut self, link: LinkId, how: Break) -> Result<(), String> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        let said = line.talk.broke(how, &mut self.kit, &mut self.witness);
        self.heed(link, said)
    }

    /// Asks on an open line.
    pub(super) fn ask_on(
        &mut self,
        link: LinkId,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<(), ConnectionError> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        let bytes = line.talk.ask(command, database, flags)?;
        self.send_bytes(link, Side::Far, &bytes);
        Ok(())
    }

    /// Does what a talk wants done, as long as somebody is there.
    fn heed(&mut self, link: LinkId, said: Vec<Said>) -> Result<(), String> {
        for said in said {
            let Some(line) = self.lines.get(&link) else { return Ok(()) };
            match (line.owner, said) {
                (_, Said::Send(bytes)) => self.send_bytes(link, Side::Far, &bytes),
                (Owner::Pool(connection), said) => self.heed_for_pool(connection, said)?,
                (Owner::Monitor(socket), said) => self.heed_for_monitor(socket, said)?,
            }
        }
        Ok(())
    }

    fn heed_for_monitor(&mut self, socket: SocketId, said: Said) -> Result<(), String> {
        let input = match said {
            Said::Send(_) | Said::Handshaken(_) => return Ok(()),
            Said::Opened { hello, round_trip } => {
                monitor::Input::Opened { socket, hello, round_trip }
            }
            Said::Reply { body, more_to_come } => {
                monitor::Input::Replied { socket, reply: body, more_to_come }
            }
            Said::Failed(error) => monitor::Input::Failed { socket, error },
            // Some shells look at a socket only when they have something to send.
            Said::Stirred(error) if self.chance.flip() => monitor::Input::Failed { socket, error },
            Said::Stirred(_) => return Ok(()),
        };
        self.feed_monitor(input)
    }

    fn heed_for_pool(&mut self, connection: u64, said: Said) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        if socket.place == Place::Aborted {
            self.met.count(Encounter::LateAnswer);
        }
        match (said, socket.place) {
            (Said::Send(_), _) => Ok(()),
            (Said::Handshaken(hello), Place::Opening { is_greeted: false }) => {
                if let Some(socket) = self.books.socket_mut(connection) {
                    socket.place = Place::Opening { is_greeted: true };
                }
                let service = hello.service_id.filter(|_| self.plan.is_balanced());
                self.feed(Input::Handshaken { id: socket.id, service })
            }
            // It crossed the order to stop.
            (Said::Handshaken(hello), Place::Aborted) => {
                let service = hello.service_id.filter(|_| self.plan.is_balanced());
                self.feed(Input::Handshaken { id: socket.id, service })
            }
            (Said::Opened { .. }, Place::Opening { .. }) => self.opened(connection),
            (Said::Opened { .. }, Place::Aborted) => {
                self.opened(connection)?;
                match self.books.socket(connection) {
                    Some(_) => Err(format!("{} was given up, and is kept", socket.id)),
                    None => Ok(()),
                }
            }
            (Said::Reply { body, .. }, Place::Used { .. }) => self.replied(connection, &body),
            (Said::Failed(error), Place::Opening { .. } | Place::Aborted) => {
                self.fail_to_open(connection, &error)
            }
            (Said::Failed(error), Place::Used { .. }) => {
                let (silent, broken) = (Encounter::SilentInUse, Encounter::BrokenInUse);
                self.met.count(if error.is_timeout() { silent } else { broken });
                self.operation_failed(connection, &error)
            }
            (Said::Stirred(error) | Said::Failed(error), Place::Idle) => {
                self.met.count(Encounter::ClosedIdle);
                let cause = self.why(&error);
                self.feed(Input::IdleClosedByPeer { id: socket.id, cause })
            }
            // Whoever has it will find out.
            (Said::Stirred(_), Place::Used { .. }) => Ok(()),
            (said, place) => Err(format!("{} is {place:?}, and says {said:?}", socket.id)),
        }
    }

    fn opened(&mut self, connection: u64) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        let Some(conn) = self.books.open(connection) else { return Ok(()) };
        self.feed(Input::EstablishSucceeded { id: socket.id, conn })
    }

    /// SDAM sees it first, which may clear the pool, and with it this very connection.
    fn fail_to_open(&mut self, connection: u64, error: &ConnectionError) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        self.met.count(match (error.is_timeout(), error.stage()) {
            (true, _) => Encounter::OpeningTimedOut,
            (false, Stage::Authentication) => Encounter::LoginFailed,
            (false, _) => Encounter::OpeningFailed,
        });
        self.hang_up_connection(connection);
        self.show_to_sdam(socket.id, error)?;
        self.books.drop_unopened(connection);
        let cause = self.why(error);
        self.feed(Input::EstablishFailed { id: socket.id, cause })
    }

    pub(super) fn hang_up_connection(&mut self, connection: u64) {
        self.uses.remove(&connection);
        if let Some(link) = self.links.remove(&connection) {
            self.hang_up(link);
        }
    }

    /// The client drops its end.
    pub(super) fn hang_up(&mut self, link: LinkId) {
        if self.lines.remove(&link).is_some() {
            self.send(link, Side::Far, Packet::End);
            self.network.hang_up(link);
        }
    }
}

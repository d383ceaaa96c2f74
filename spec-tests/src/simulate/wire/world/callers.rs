//! Those who use the pool: each has a connection, asks something on it, and brings it back.

use std::time::Duration;

use bson::{RawDocument, rawdoc};
use cenote_core::error::{CommandError, ConnectionError, ReplyPart, Stage};
use cenote_core::monitor;
use cenote_core::pool::{CheckOutError, ConnId, Health, Input, Purpose, WaiterId};
use cenote_core::wire::Flags;

use super::due::Due;
use super::{QUICK, World};
use crate::simulate::books::Place;
use crate::simulate::chance::Chance;
use crate::simulate::habits::Request;
use crate::simulate::met::Encounter;
use crate::simulate::wire::cause::Why;
use crate::simulate::wire::talk::Break;

type Outcome = Result<(ConnId, u64), CheckOutError<Why>>;

/// What is done with a connection that is out.
#[derive(Debug, Default)]
pub(super) struct Use {
    /// How many commands are still to be sent.
    commands: u32,
    /// Whoever has it goes away before the reply to his command has come.
    is_abandoned: bool,
    /// Why it must not be used again.
    pub(super) broken: Option<ConnectionError>,
}

/// Until a caller looks again whether there is a server.
const PATIENCE: Duration = Duration::from_millis(20);

impl World<'_> {
    pub(super) fn ask(&mut self, caller: u32) -> Result<(), String> {
        if self.is_closed {
            return Ok(());
        }
        // As clients do, which have a server selected first; and some ask all the same.
        if !self.sees_server() && (self.is_calm() || !self.chance.one_in(8)) {
            self.plan_in(PATIENCE, Due::Ask { caller });
            return self.feed_monitor(monitor::Input::RequestCheck);
        }
        let id = self.books.ask(caller);
        let plan = self.plan;
        let request = if self.is_calm() {
            Request::default()
        } else {
            let allowed = |chance: &mut Chance| chance.time(plan.latency) * 8;
            let patience = |chance: &mut Chance| chance.time(plan.latency) * 8;
            plan.habits.request(&mut self.chance, allowed, patience)
        };
        self.met.count_request(&request);
        if plan.habits.bursts && !self.is_calm() {
            self.met.count(Encounter::Burst);
        }
        if let Some(after) = request.gives_up {
            self.plan_in(after, Due::GiveUp { request: id });
        }
        let (deadline, purpose) = (request.deadline(self.now), request.purpose);
        self.feed(Input::CheckOutRequested { id, waiter: id.0, deadline, purpose })
    }

    /// It may have been answered long ago, of which the pool must make nothing.
    pub(super) fn give_up(&mut self, request: WaiterId) -> Result<(), String> {
        let waits = self.books.is_waiting(request);
        self.met.count(if waits { Encounter::GaveUp } else { Encounter::GaveUpTooLate });
        self.feed(Input::CheckOutCancelled { id: request })?;
        match self.books.is_waiting(request) {
            true => Err(format!("{request} has gone, and waits")),
            false => Ok(()),
        }
    }

    pub(super) fn delivered(&mut self, waiter: u64, outcome: &Outcome) -> Result<(), String> {
        let request = WaiterId(waiter);
        match *outcome {
            Ok((id, tag)) => {
                self.subject.expect_turn(&self.books, request)?;
                let caller = self.books.deliver(request, id, tag)?;
                self.use_connection(id.number());
                if self.is_calm() {
                    if let Some(served) = self.served.get_mut(caller as usize) {
                        *served = true;
                    }
                }
            }
            Err(ref error) => {
                self.met.count_error(error);
                let caller = self.books.answer(request)?;
                self.come_again(caller);
            }
        }
        Ok(())
    }

    fn use_connection(&mut self, connection: u64) {
        let Some(socket) = self.books.socket(connection) else { return };
        let use_number = socket.use_number;
        let habits = self.plan.habits;
        let is_calm = self.is_calm();
        let mut often = |times| !is_calm && self.chance.one_in(times);
        let (holds, is_abandoned) = (often(habits.holds_for_ever), often(habits.breaks));
        let pins = often(habits.pins);
        let commands = if is_calm { 1 } else { self.chance.between(0, 3) };
        let commands = u32::try_from(commands).unwrap_or_default();
        self.uses.insert(connection, Use { commands, is_abandoned, broken: None });
        if is_abandoned {
            self.met.count(Encounter::BringsBackBroken);
        }
        if holds {
            self.met.count(Encounter::HoldsForEver);
            return;
        }
        let after = self.time(self.plan.work);
        self.plan_in(after, Due::Speak { connection, use_number });
        if pins {
            self.plan_in(Duration::ZERO, Due::Repurpose { connection, use_number });
        }
    }

    /// The next command, or the end of it.
    pub(super) fn speak(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        if !self.is_used(connection, use_number) {
            return Ok(());
        }
        let Some(Use { commands, is_abandoned, broken }) = self.uses.get_mut(&connection) else {
            return Ok(());
        };
        if *commands == 0 || broken.is_some() {
            return self.finish(connection, use_number);
        }
        *commands -= 1;
        let command = *commands;
        let is_abandoned = *is_abandoned;
        let Some(&link) = self.links.get(&connection) else { return Ok(()) };
        let asked = self.ask_on(link, &rawdoc! { "ping": 1 }, Some("admin"), Flags::NONE);
        if let Err(error) = asked {
            return self.operation_failed(connection, &error);
        }
        let silence = Due::Silence { connection, use_number, command };
        self.plan_in(self.plan.socket_timeout, silence);
        if is_abandoned {
            let after = self.chance.time(self.plan.latency);
            self.plan_in(after, Due::Finish { connection, use_number });
        }
        Ok(())
    }

    pub(super) fn replied(&mut self, connection: u64, reply: &RawDocument) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
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

    /// Nothing came in time.
    pub(super) fn silence(
        &mut self,
        connection: u64,
        use_number: u64,
        command: u32,
    ) -> Result<(), String> {
        let is_same = self.uses.get(&connection).is_some_and(|it| it.commands == command);
        let Some(&link) = self.links.get(&connection) else { return Ok(()) };
        let awaits = self.lines.get(&link).is_some_and(|line| line.talk.awaits_reply());
        if !is_same || !awaits || !self.is_used(connection, use_number) {
            return Ok(());
        }
        self.break_talk(link, Break::TimedOut(self.plan.socket_timeout))
    }

    /// SDAM sees it first; then the connection comes back, broken or not.
    pub(super) fn operation_failed(
        &mut self,
        connection: u64,
        error: &ConnectionError,
    ) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        if !error.leaves_connection_healthy() {
            if let Some(used) = self.uses.get_mut(&connection) {
                used.broken = Some(error.clone());
            }
        }
        self.show_to_sdam(socket.id, error)?;
        self.finish(connection, socket.use_number)
    }

    /// A cursor is opened with the first reply, or a transaction ends.
    pub(super) fn repurpose(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        let purpose = if self.chance.flip() { Purpose::Cursor } else { Purpose::Other };
        match self.books.socket(connection) {
            Some(socket) if self.is_used(connection, use_number) => {
                self.feed(Input::Repurposed { id: socket.id, purpose })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whoever has a connection brings it back.
    pub(super) fn finish(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        if socket.use_number != use_number {
            return Ok(());
        }
        let caller = match socket.place {
            Place::Used { caller } => caller,
            Place::Inherited { caller } => {
                self.met.count(Encounter::InheritedComesBack);
                caller
            }
            Place::Opening { .. } | Place::Aborted | Place::Idle => return Ok(()),
        };
        self.come_again(caller);
        let health = match self.flaw_of(connection) {
            Some(error) => Health::Errored(self.why(&error)),
            None => Health::Healthy,
        };
        self.uses.remove(&connection);
        let Some((id, conn)) = self.books.give_back(connection) else { return Ok(()) };
        self.feed(Input::CheckedIn { id, conn, health })
    }

    /// Why a connection must not be used again.
    fn flaw_of(&mut self, connection: u64) -> Option<ConnectionError> {
        let broken = self.uses.get_mut(&connection).and_then(|used| used.broken.take());
        broken.or_else(|| {
            let line = self.links.get(&connection).and_then(|link| self.lines.get(link))?;
            let reason = "given up in the middle of a command";
            let unusable = || ConnectionError::network(Stage::Operation, reason);
            (!line.talk.is_reusable()).then(unusable)
        })
    }

    /// The pool breaks off what is done with a connection: it comes back at once, broken; or what was
    /// done with it is over before anybody could do that.
    pub(super) fn interrupted(&mut self, id: ConnId) -> Result<(), String> {
        self.books.expect_used(id)?;
        self.met.count(Encounter::Interrupted);
        let connection = id.number();
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        if self.is_calm() || !self.chance.one_in(4) {
            let reason = "interrupted due to server monitor timeout";
            let error = ConnectionError::network(Stage::Operation, reason);
            self.uses.entry(connection).or_default().broken = Some(error);
        }
        let due = Due::Finish { connection, use_number: socket.use_number };
        self.plan_in(Duration::ZERO, due);
        Ok(())
    }

    /// Everybody who has a connection brings it back, and everybody asks once more.
    pub(super) fn finish_everything(&mut self) {
        let all: Vec<_> = self.books.sockets().copied().collect();
        for socket in all {
            if let Place::Used { .. } | Place::Inherited { .. } = socket.place {
                let (connection, use_number) = (socket.id.number(), socket.use_number);
                self.plan_in(QUICK, Due::Finish { connection, use_number });
            }
        }
        for caller in 0..self.plan.callers {
            self.plan_in(QUICK, Due::Ask { caller });
        }
    }

    fn is_used(&self, connection: u64, use_number: u64) -> bool {
        self.books.socket(connection).is_some_and(|socket| {
            matches!(socket.place, Place::Used { .. }) && socket.use_number == use_number
        })
    }

    fn come_again(&mut self, caller: u32) {
        if self.is_closed {
            return;
        }
        let is_done = self.is_calm() && self.served.get(caller as usize) == Some(&true);
        if !is_done {
            let after = self.think();
            self.plan_in(after, Due::Ask { caller });
        }
    }

    /// Until a caller asks again: in a burst, when all others do, four times in a heartbeat, which is
    /// long beside what packets take.
    pub(super) fn think(&mut self) -> Duration {
        if self.plan.habits.bursts && !self.is_calm() {
            let beat = u64::try_from(self.plan.heartbeat.as_nanos()).unwrap_or(u64::MAX) / 4;
            return Duration::from_nanos(beat - self.now.as_nanos() % beat);
        }
        self.time(self.plan.think)
    }
}

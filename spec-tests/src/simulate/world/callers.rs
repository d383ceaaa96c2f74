//! Those who use the pool.

use std::time::Duration;

use cenote_core::pool::{CheckOutError, ConnId, Health, Input, Purpose, WaiterId};

use super::{Chance, Due, Encounter, Place, QUICK, Socket, Trouble, World, service_of};
use crate::simulate::habits::Request;

/// Nobody waits longer than this to meet something that is due.
const COINCIDENCE: Duration = Duration::from_millis(500);

type Outcome = Result<(ConnId, u64), CheckOutError<u64>>;

impl World<'_> {
    pub(super) fn ask(&mut self, caller: u32) -> Result<(), String> {
        if !self.subject.is_ready() && self.is_patient() {
            self.patient.push(caller);
            return Ok(());
        }
        let id = self.books.ask(caller);
        let plan = self.plan;
        let request = if self.is_calm {
            Request::default()
        } else {
            let allowed = |chance: &mut Chance| chance.time(plan.open);
            let patience = |chance: &mut Chance| chance.time(plan.work);
            plan.habits.request(&mut self.chance, allowed, patience)
        };
        self.met.count_request(&request);
        if plan.habits.bursts && !self.is_calm {
            self.met.count(Encounter::Burst);
        }
        if let Some(after) = request.gives_up {
            self.plan_in(after, Due::GiveUp { request: id });
        }
        let (deadline, purpose) = (request.deadline(self.now), request.purpose);
        self.feed(Input::CheckOutRequested { id, waiter: id.0, deadline, purpose })
    }

    /// As clients are, which have a server selected first; and some ask all the same.
    fn is_patient(&mut self) -> bool {
        if self.is_calm {
            return !self.is_closed;
        }
        self.plan.habits.is_patient && !self.chance.one_in(16)
    }

    /// Everybody has waited for this.
    pub(super) fn call_the_patient(&mut self) {
        for caller in std::mem::take(&mut self.patient) {
            self.plan_in(Duration::ZERO, Due::Ask { caller });
        }
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
                self.use_connection(id);
                if self.is_calm {
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

    /// It ends by itself, with the server's trouble, or never.
    pub(super) fn use_connection(&mut self, id: ConnId) {
        let Some(socket) = self.books.socket(id.number()) else { return };
        let due = Due::Finish { connection: id.number(), use_number: socket.use_number };
        if self.is_calm {
            return self.plan_in(QUICK, due);
        }
        if self.chance.one_in(self.plan.habits.holds_for_ever) {
            self.met.count(Encounter::HoldsForEver);
            return;
        }
        let work = self.chance.time(self.plan.work);
        let after = match self.trouble {
            Some(Trouble::Stalls) => self.plan.connect_timeout,
            Some(Trouble::IsSlow) => work * 10,
            _ => work,
        };
        let after = self.until_due().unwrap_or(after);
        self.plan_in(after, due);
        if self.chance.one_in(self.plan.habits.pins) {
            let Due::Finish { connection, use_number } = due else { return };
            self.plan_in(Duration::ZERO, Due::Repurpose { connection, use_number });
        }
    }

    /// Until something is due in the pool, for whoever is to meet it.
    fn until_due(&mut self) -> Option<Duration> {
        let due = self.subject.pool().next_deadline()?.at;
        let is_soon = due > self.now && due < self.now + COINCIDENCE;
        if !is_soon || !self.chance.one_in(self.plan.coincides) {
            return None;
        }
        self.met.count(Encounter::Coincidence);
        Some(due.saturating_since(self.now))
    }

    /// A cursor is opened with the first reply, or a transaction ends.
    pub(super) fn repurpose(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        let purpose = if self.chance.flip() { Purpose::Cursor } else { Purpose::Other };
        match self.books.socket(connection) {
            Some(Socket { id, place: Place::Used { .. }, use_number: now, .. })
                if now == use_number =>
            {
                self.feed(Input::Repurposed { id, purpose })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What somebody has done with his connection is over: it comes back.
    pub(super) fn finish(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        let Some(socket) = self.books.socket(connection) else { return Ok(()) };
        let caller = match socket.place {
            Place::Used { caller } | Place::Inherited { caller } => caller,
            Place::Opening { .. } | Place::Aborted | Place::Idle => return Ok(()),
        };
        if socket.use_number != use_number {
            return Ok(());
        }
        if let Place::Inherited { .. } = socket.place {
            self.met.count(Encounter::InheritedComesBack);
        }
        self.come_again(caller);
        let is_stale = self.subject.pool().is_stale(socket.id);
        let health = self.health_of(connection);
        // What the server did is shown to SDAM first.
        if self.blames_server(connection, &health) && !is_stale {
            self.clear(service_of(socket), false)?;
        }
        let Some((id, conn)) = self.books.give_back(connection) else { return Ok(()) };
        self.feed(Input::CheckedIn { id, conn, health })
    }

    /// The pool breaks off what is done with a connection: it comes back at once, broken; or what was
    /// done with it is over before anybody could do that.
    pub(super) fn interrupted(&mut self, id: ConnId) -> Result<(), String> {
        self.books.expect_used(id)?;
        self.met.count(Encounter::Interrupted);
        let is_too_late = !self.is_calm && self.chance.one_in(4);
        if let Some(socket) = self.books.socket_mut(id.number()) {
            socket.is_dead |= !is_too_late;
            let due = Due::Finish { connection: id.number(), use_number: socket.use_number };
            self.plan_in(Duration::ZERO, due);
        }
        Ok(())
    }

    /// Everybody who has a connection brings it back, and every connection is open or not.
    pub(super) fn finish_everything(&mut self) {
        let all: Vec<_> = self.books.sockets().copied().collect();
        for socket in all {
            let connection = socket.id.number();
            match socket.place {
                Place::Opening { .. } | Place::Aborted => {
                    self.plan_in(QUICK, Due::Greeted { connection });
                    self.plan_in(QUICK, Due::Opened { connection });
                }
                Place::Used { .. } | Place::Inherited { .. } => {
                    let due = Due::Finish { connection, use_number: socket.use_number };
                    self.plan_in(QUICK, due);
                }
                Place::Idle => {}
            }
        }
        for caller in 0..self.plan.callers {
            self.plan_in(QUICK, Due::Ask { caller });
        }
    }

    fn come_again(&mut self, caller: u32) {
        if self.is_closed {
            return;
        }
        let is_done = self.is_calm && self.served.get(caller as usize) == Some(&true);
        if !is_done {
            let after = self.think();
            self.plan_in(after, Due::Ask { caller });
        }
    }

    fn health_of(&mut self, connection: u64) -> Health<u64> {
        let Some(socket) = self.books.socket(connection) else { return Health::Healthy };
        let breaks = !self.is_calm && self.chance.one_in(self.plan.habits.breaks);
        let times_out = self.trouble == Some(Trouble::Stalls);
        for (happened, what) in [
            (breaks, Encounter::BringsBackBroken),
            (socket.is_dead, Encounter::BrokenInUse),
            (times_out, Encounter::SilentInUse),
        ] {
            if happened {
                self.met.count(what);
            }
        }
        let is_broken = socket.is_dead || breaks || times_out;
        if is_broken { Health::Errored(self.now.as_nanos()) } else { Health::Healthy }
    }

    /// A network error and a change of the server's state clear the pool; a timeout does not.
    fn blames_server(&self, connection: u64, health: &Health<u64>) -> bool {
        if self.is_calm {
            return false;
        }
        match (self.trouble, health) {
            (Some(Trouble::StepsDown), _) => true,
            (Some(Trouble::Stalls), _) | (_, Health::Healthy) => false,
            (_, Health::Errored(_)) => {
                self.books.socket(connection).is_some_and(|socket| socket.is_dead)
            }
        }
    }
}

//! A pool among callers and a server that are told by a [`World`], in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, ConnectionState, Health, Input, Instant, Status, WaiterId,
};
use cenote_core::trace::Traced;

use super::goal::Stop;
use super::machine::Machine;
use super::outcome::{Outcome, Tally};
use super::world::{Ask, Clear, Due, Event, FailedOpening, Opening, Use, Warm, World};
use crate::agenda::Agenda;

/// Runs a new pool among callers and a server, to the end or until a goal is lost.
///
/// # Panics
///
/// If the world gives inputs that the pool refuses.
pub(crate) fn run<M: Machine, W: World>(
    machine: &mut M,
    world: &mut W,
    warm: &Warm,
    (start, end): (Instant, Instant),
    stop: Option<Stop>,
) -> Outcome {
    let level = machine.pool().snapshot().into();
    let mut run = Run {
        machine,
        world,
        agenda: Agenda::default(),
        arrivals: 0,
        now: start,
        requests: Vec::new(),
        pending: BTreeMap::new(),
        in_use: BTreeMap::new(),
        outer: BTreeMap::new(),
        is_warming: false,
        tally: Tally::new(start, level),
    };
    run.warm_up(warm);
    run.tally = Tally::new(start, run.machine.pool().snapshot().into()).until(stop);
    let Run { world, agenda, .. } = &mut run;
    world.begin(&mut |at, due| agenda.plan(at, due));
    run.arrivals = agenda.number();
    run.arrive();
    while !run.tally.is_lost() && run.step(end) {}
    run.tally.finish(end)
}

struct Run<'a, M, W> {
    machine: &'a mut M,
    world: &'a mut W,
    agenda: Agenda<Due>,
    /// The number in the agenda of the arrivals, of which it has one at a time.
    arrivals: u64,
    now: Instant,
    /// The world's number of each request, in the order of their ids, from 1.
    requests: Vec<u32>,
    pending: BTreeMap<ConnId, Opening>,
    in_use: BTreeMap<ConnId, (WaiterId, Use)>,
    /// What is checked in at the end of a nested request.
    outer: BTreeMap<u32, (ConnId, WaiterId)>,
    is_warming: bool,
    tally: Tally,
}

/// Of requests that are not the world's.
const NONE: u32 = u32::MAX;

impl<M: Machine, W: World> Run<'_, M, W> {
    /// Establishes connections at once, for the requests that hold them and for later.
    fn warm_up(&mut self, warm: &Warm) {
        if !warm.is_ready {
            return;
        }
        self.is_warming = true;
        self.feed(Input::Ready);
        for &request in &warm.held {
            self.ask(request);
        }
        let most = self.machine.pool().snapshot().max_pool_size.unwrap_or(u32::MAX);
        let wanted = (warm.held.len() as u32).saturating_add(warm.idle).min(most);
        while self.in_use.len() < wanted as usize {
            self.ask(NONE);
        }
        self.is_warming = false;
        let idle: Vec<_> = self.in_use.iter().map(|(&conn, &(waiter, _))| (conn, waiter)).collect();
        for (conn, waiter) in idle {
            if self.number(waiter) == NONE {
                self.check_in(conn, waiter);
            }
        }
    }

    /// Returns whether there was anything before the end.
    fn step(&mut self, end: Instant) -> bool {
        let timer = self.machine.pool().next_deadline().map(|due| due.at.max(self.now));
        let next = self.agenda.next_time();
        if let Some(at) = timer.filter(|&at| at <= end && next.is_none_or(|next| at < next)) {
            self.now = at;
            self.feed(Input::Timer);
            return true;
        }
        let Some((at, due)) = self.agenda.pop().filter(|&(at, _)| at <= end) else { return false };
        self.now = self.now.max(at);
        self.happen(due);
        true
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Ask(request) => self.ask(request),
            Due::Arrive(request) => {
                self.arrive();
                self.ask(request);
            }
            Due::Cancel(id) => self.feed(Input::CheckOutCancelled { id }),
            Due::Opened(id) => self.opened(id),
            Due::CheckIn(id, waiter) => self.check_in(id, waiter),
            Due::Event(event) => self.event(event),
            Due::Ready => self.ready(),
        }
    }

    fn arrive(&mut self) {
        if let Some((at, request)) = self.world.arrival() {
            self.agenda.plan_as(self.arrivals, at, Due::Arrive(request));
        }
    }

    fn ask(&mut self, request: u32) {
        self.requests.push(request);
        let id = WaiterId(self.requests.len() as u64);
        let ask = if request == NONE { Ask::default() } else { self.world.request(request) };
        if !self.is_warming {
            self.tally.asked(self.now, id);
        }
        let deadline = ask.limit.map(|limit| self.now + limit);
        let purpose = ask.purpose;
        if let Some(patience) = ask.patience {
            self.agenda.plan(self.now + patience, Due::Cancel(id));
        }
        self.feed(Input::CheckOutRequested { id, waiter: id, deadline, purpose });
    }

    fn number(&self, WaiterId(id): WaiterId) -> u32 {
        self.requests[id as usize - 1]
    }

    fn opened(&mut self, id: ConnId) {
        // It may have been aborted.
        let Some(opening) = self.pending.remove(&id) else { return };
        if opening.service.is_some() {
            self.feed(Input::Handshaken { id, service: opening.service, clears_at_hello: None });
        }
        match opening.failure {
            None => self.feed(Input::EstablishSucceeded { id, conn: () }),
            Some(FailedOpening { cause, overloaded }) => {
                self.fail(id, opening.clear);
                self.feed(Input::EstablishFailed { id, cause, overloaded });
            }
        }
    }

    fn check_in(&mut self, id: ConnId, waiter: WaiterId) {
        // It may have been interrupted.
        if self.in_use.get(&id).is_none_or(|&(holder, _)| holder != waiter) {
            return;
        }
        let request = self.number(waiter);
        if let Some(nested) = self.world.nested(request).filter(|_| request != NONE) {
            self.outer.insert(nested, (id, waiter));
            return self.ask(nested);
        }
        let Some((_, used)) = self.in_use.remove(&id) else { return };
        let health = match used.failure {
            None => Health::Healthy,
            Some(cause) => {
                self.fail(id, used.clear);
                Health::Errored(cause)
            }
        };
        self.feed(Input::CheckedIn { id, conn: (), health });
        self.ended(waiter, true);
    }

    /// SDAM ignores errors of stale connections.
    fn fail(&mut self, id: ConnId, clear: Option<u32>) {
        if let Some(clear) = clear.filter(|_| !self.machine.pool().is_stale(id)) {
            self.clear(clear);
        }
    }

    fn event(&mut self, event: u32) {
        match self.world.event(event) {
            Event::Ready => self.ready(),
            Event::Clear(clear) => self.clear(clear),
            Event::Retire => self.feed(Input::RetireConnections),
            Event::Release => self.feed(Input::ReleaseIdle),
            Event::SetOptions(options) => self.feed(Input::SetOptions { options }),
            Event::PeerCloses(cause) => {
                let mut all = self.machine.pool().connections();
                let idle = all.find(|it| it.state == ConnectionState::Available).map(|it| it.id);
                drop(all);
                if let Some(id) = idle {
                    self.feed(Input::IdleClosedByPeer { id, cause });
                }
            }
        }
    }

    fn clear(&mut self, clear: u32) {
        let Clear { cause, interrupt, service, ready_after } = self.world.clear(clear);
        if let Some(after) = ready_after {
            self.agenda.plan(self.now + after, Due::Ready);
        }
        self.feed(Input::Clear { cause, interrupt, service });
    }

    fn ready(&mut self) {
        if self.machine.pool().snapshot().status == Status::Paused {
            self.feed(Input::Ready);
        }
    }

    fn ended(&mut self, waiter: WaiterId, was_served: bool) {
        let request = self.number(waiter);
        if let Some((id, outer)) = self.outer.remove(&request) {
            self.agenda.plan(self.now, Due::CheckIn(id, outer));
        }
        if request != NONE
            && let Some((at, next)) = self.world.end(request, self.now, was_served)
        {
            self.agenda.plan(at.max(self.now), Due::Ask(next));
        }
    }

    fn feed(&mut self, input: Input<Traced>) {
        let mut actions = Vec::new();
        self.machine.handle(self.now, input, &mut actions);
        self.tally.after(self.now, self.machine.pool().snapshot().into());
        for action in actions {
            self.tally.action(self.now, &action);
            self.act(&action);
        }
    }

    fn act(&mut self, action: &Action<Traced>) {
        match action {
            Action::StartEstablish { id, .. } => self.start(*id),
            Action::AbortEstablish { id } => {
                self.pending.remove(id);
            }
            Action::Deliver { waiter, outcome: Ok((id, ())) } => self.serve(*waiter, *id),
            Action::Deliver { waiter, outcome: Err(_) } => self.ended(*waiter, false),
            Action::Interrupt { id } => {
                if let Some((waiter, used)) = self.in_use.get_mut(id) {
                    used.failure.get_or_insert_default();
                    used.clear = None;
                    self.agenda.plan(self.now, Due::CheckIn(*id, *waiter));
                }
            }
            // No connection is checked in with a reply to come.
            Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::CloseSocket { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }

    fn start(&mut self, id: ConnId) {
        let mut opening = self.world.open(id.number(), self.now);
        if self.is_warming {
            opening = Opening { lasts: Duration::ZERO, failure: None, clear: None, ..opening };
            self.pending.insert(id, opening);
            self.opened(id);
            return;
        }
        self.agenda.plan(self.now + opening.lasts, Due::Opened(id));
        self.pending.insert(id, opening);
    }

    fn serve(&mut self, waiter: WaiterId, id: ConnId) {
        let request = self.number(waiter);
        let used = if request == NONE {
            Use::default()
        } else {
            self.world.serve(request, self.in_use.len() as u32 + 1, self.now)
        };
        if let Some(lasts) = used.lasts {
            self.agenda.plan(self.now + lasts, Due::CheckIn(id, waiter));
        }
        self.in_use.insert(id, (waiter, used));
    }
}

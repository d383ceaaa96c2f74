//! A pool among callers and a server that are told by a [`World`], in virtual time.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, ConnectionState, Health, Input, Instant, PoolOptions, PoolState, Purpose,
    ServiceId, Status, WaiterId, WithoutEvents,
};
use cenote_core::trace::{Cause, Traced};

use super::outcome::{Outcome, Tally};
use crate::agenda::Agenda;
use crate::record::RecordedRun;

/// What the pool does not decide: when requests come, for how long they use a connection, and how the server answers.
pub(crate) trait World {
    /// What happens whatever the pool does: the first requests, by the number that the world gives them, and others.
    fn begin(&mut self, plan: &mut dyn FnMut(Instant, Due));

    /// How a request is made.
    fn request(&mut self, request: u32) -> Ask;

    /// How a request that was served uses its connection, one of those in use.
    fn serve(&mut self, request: u32, in_use: u32, now: Instant) -> Use;

    /// The request that the caller of this one makes at the end of its use, and whose end it waits for before it checks in.
    fn nested(&mut self, request: u32) -> Option<u32>;

    /// How a connection is established.
    fn open(&mut self, number: u64, now: Instant) -> Opening;

    /// A request has ended, after its use if it was served. The next one that its caller makes, and when.
    fn end(&mut self, request: u32, now: Instant, was_served: bool) -> Option<(Instant, u32)>;

    /// An event that was planned.
    fn event(&mut self, event: u32) -> Event;

    /// A clear.
    fn clear(&self, clear: u32) -> Clear;
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// The caller's deadline.
    pub(crate) limit: Option<Duration>,
    /// The caller cancels after this time.
    pub(crate) patience: Option<Duration>,
    pub(crate) purpose: Purpose,
}

/// The use of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Use {
    /// `None`: it is never checked in.
    pub(crate) lasts: Option<Duration>,
    /// How it fails.
    pub(crate) failure: Option<Cause>,
    /// The pool is cleared because of the failure.
    pub(crate) clear: Option<u32>,
}

/// An establishment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opening {
    pub(crate) lasts: Duration,
    pub(crate) service: Option<ServiceId>,
    pub(crate) failure: Option<FailedOpening>,
    pub(crate) clear: Option<u32>,
}

/// How an establishment fails.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FailedOpening {
    pub(crate) cause: Cause,
    /// The server may be overloaded.
    pub(crate) overloaded: bool,
}

/// A clear, and when the pool is ready again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clear {
    pub(crate) cause: Cause,
    pub(crate) interrupt: bool,
    pub(crate) service: Option<ServiceId>,
    pub(crate) ready_after: Option<Duration>,
}

/// What happens to the pool from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Ready,
    Clear(u32),
    Retire,
    Release,
    SetOptions(Box<PoolOptions>),
    /// The peer closes the idle connection that has waited longest.
    PeerCloses(Cause),
}

/// What is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    Ask(u32),
    Cancel(WaiterId),
    Opened(ConnId),
    CheckIn(ConnId, WaiterId),
    Event(u32),
    Ready,
}

/// The pool, recorded or not.
pub(crate) trait Machine {
    fn handle(&mut self, now: Instant, input: Input<Traced>, out: &mut Vec<Action<Traced>>);
    fn pool(&self) -> &PoolState<Traced>;
}

impl Machine for PoolState<Traced> {
    fn handle(&mut self, now: Instant, input: Input<Traced>, out: &mut Vec<Action<Traced>>) {
        let handled = self.handle(now, input, &mut WithoutEvents(out));
        handled.unwrap_or_else(|misuse| panic!("the inputs of a world are legal: {misuse}"));
    }

    fn pool(&self) -> &PoolState<Traced> {
        self
    }
}

impl<W: io::Write> Machine for RecordedRun<Traced, W> {
    fn handle(&mut self, now: Instant, input: Input<Traced>, out: &mut Vec<Action<Traced>>) {
        let handled = self.feed_into(now, input, &mut WithoutEvents(out));
        handled.unwrap_or_else(|error| panic!("memory takes what is recorded: {error}"));
    }

    fn pool(&self) -> &PoolState<Traced> {
        self.pool()
    }
}

/// The state of a pool when a run begins: as if it had been used before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Warm {
    pub(crate) is_ready: bool,
    /// Requests that hold connections.
    pub(crate) held: Vec<u32>,
    /// Idle connections.
    pub(crate) idle: u32,
}

/// Runs a new pool among callers and a server.
///
/// # Panics
///
/// If the world gives inputs that the pool refuses.
pub(crate) fn run<M: Machine, W: World>(
    machine: &mut M,
    world: &mut W,
    warm: &Warm,
    start: Instant,
    end: Instant,
) -> Outcome {
    let mut run = Run::new(machine, world, start);
    run.warm_up(warm);
    run.tally = Tally::new(start, run.machine.pool().snapshot().into());
    let Run { world, agenda, .. } = &mut run;
    world.begin(&mut |at, due| agenda.plan(at, due));
    while run.step(end) {}
    run.tally.finish(end)
}

struct Run<'a, M, W> {
    machine: &'a mut M,
    world: &'a mut W,
    agenda: Agenda<Due>,
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

impl<'a, M: Machine, W: World> Run<'a, M, W> {
    fn new(machine: &'a mut M, world: &'a mut W, start: Instant) -> Self {
        let tally = Tally::new(start, machine.pool().snapshot().into());
        Self {
            machine,
            world,
            agenda: Agenda::default(),
            now: start,
            requests: Vec::new(),
            pending: BTreeMap::new(),
            in_use: BTreeMap::new(),
            outer: BTreeMap::new(),
            is_warming: false,
            tally,
        }
    }

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
            Due::Cancel(id) => self.feed(Input::CheckOutCancelled { id }),
            Due::Opened(id) => self.opened(id),
            Due::CheckIn(id, waiter) => self.check_in(id, waiter),
            Due::Event(event) => self.event(event),
            Due::Ready => self.ready(),
        }
    }

    fn ask(&mut self, request: u32) {
        self.requests.push(request);
        let id = WaiterId(self.requests.len() as u64);
        let ask = if request == NONE {
            Ask { limit: None, patience: None, purpose: Purpose::Other }
        } else {
            self.world.request(request)
        };
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
                let mut connections = self.machine.pool().connections();
                let idle = connections.find(|it| it.state == ConnectionState::Available);
                let idle = idle.map(|it| it.id);
                drop(connections);
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
        if request != NONE {
            if let Some((at, next)) = self.world.end(request, self.now, was_served) {
                self.agenda.plan(at.max(self.now), Due::Ask(next));
            }
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
            Use { lasts: None, failure: None, clear: None }
        } else {
            self.world.serve(request, self.in_use.len() as u32 + 1, self.now)
        };
        if let Some(lasts) = used.lasts {
            self.agenda.plan(self.now + lasts, Due::CheckIn(id, waiter));
        }
        self.in_use.insert(id, (waiter, used));
    }
}

//! Reads a workload from a trace.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::pool::{
    Action, CheckOutError, ConnId, ConnectionState, Health, Input, Instant, PoolState, Purpose,
    ServiceId, Status, WaiterId,
};
use cenote_core::trace::{Cause, Traced};

use super::followers::Followers;
use super::outcome::{Outcome, Tally};
use super::request::{Fate, Limits, Request};
use super::stalls::Stalls;
use super::workload::{Source, Workload};
use super::world::{Clear, Event, FailedOpening, Opening, Warm};
use crate::holders::Activity;
use crate::step_reader::View;

/// Reads a workload, step by step.
pub(super) struct WorkloadReader {
    workload: Workload,
    tally: Tally,
    /// Requests without an outcome.
    waiting: BTreeMap<WaiterId, u32>,
    in_use: BTreeMap<ConnId, u32>,
    /// Of connections that are being established.
    services: BTreeMap<ConnId, ServiceId>,
    /// The number of the clear that the input before was.
    just_cleared: Option<u32>,
    /// Clears after which the pool has not been ready, and their times.
    not_ready_since: Vec<(u32, Instant)>,
    has_ended: bool,
}

impl WorkloadReader {
    pub(super) fn new(
        source: Source,
        pool: &PoolState<Traced>,
        start: Instant,
        is_new: bool,
    ) -> Self {
        let workload = Workload {
            source,
            start,
            end: start,
            options: pool.options().clone(),
            warm: Warm::default(),
            requests: Vec::new(),
            limits: Limits::default(),
            failures: BTreeMap::new(),
            openings: Vec::new(),
            events: Vec::new(),
            clears: Vec::new(),
            recorded: Outcome::default(),
            leaked: 0,
            unended: 0,
            leaks: None,
            stalls: Stalls::default(),
            retries: Followers::new(),
            nested: Followers::new(),
            tick: Duration::ZERO,
            lost: false,
        };
        let mut reader = Self {
            workload,
            tally: Tally::new(start, pool.snapshot().into()),
            waiting: BTreeMap::new(),
            in_use: BTreeMap::new(),
            services: BTreeMap::new(),
            just_cleared: None,
            not_ready_since: Vec::new(),
            has_ended: false,
        };
        if !is_new {
            reader.begin_within(pool);
        }
        reader
    }

    /// The state of a pool that has been in use.
    fn begin_within(&mut self, pool: &PoolState<Traced>) {
        let start = self.workload.start;
        for connection in pool.connections() {
            match connection.state {
                ConnectionState::InUse { purpose, .. } => {
                    let number = self.add_request(start, None, purpose);
                    self.workload.requests[number as usize].fate = Fate::Held;
                    self.workload.warm.held.push(number);
                    self.in_use.insert(connection.id, number);
                }
                ConnectionState::Pending { .. } => {
                    self.services.extend(connection.service.map(|id| (connection.id, id)));
                }
                ConnectionState::Available
                | ConnectionState::PendingResponse { .. }
                | ConnectionState::Draining { .. } => self.workload.warm.idle += 1,
            }
        }
        for waiter in pool.waiters() {
            let limit = waiter.deadline.map(|deadline| deadline.saturating_since(start));
            let number = self.add_request(start, limit, waiter.purpose);
            self.waiting.insert(waiter.id, number);
            self.tally.asked(start, waiter.id);
        }
        self.workload.warm.is_ready = pool.snapshot().status == Status::Ready;
    }

    fn add_request(&mut self, asked: Instant, limit: Option<Duration>, purpose: Purpose) -> u32 {
        let number = self.workload.requests.len() as u32;
        let limit = self.workload.limits.add(limit);
        self.workload.requests.push(Request::new(asked, limit, purpose));
        number
    }

    pub(super) fn add(&mut self, view: &View<'_>) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        let now = view.pool.now();
        if view.step.lost_before.is_some() {
            // The state after a gap includes this step.
            *self = Self::new(self.workload.source.clone(), view.pool, now, false);
            self.workload.lost = true;
            return Continue(());
        }
        if view.step.refused {
            return Continue(());
        }
        self.workload.end = now;
        self.tally.input(now, &view.step.input);
        self.input(now, view);
        self.tally.after(now, view.pool.snapshot().into());
        for action in view.actions {
            self.tally.action(now, action);
            self.action(now, action);
        }
        if self.has_ended { Break(()) } else { Continue(()) }
    }

    fn input(&mut self, now: Instant, view: &View<'_>) {
        // Callers that give up because of a clear may come between it and its cause.
        let is_between = matches!(view.step.input, Input::CheckOutCancelled { .. });
        let cleared = if is_between { None } else { self.just_cleared.take() };
        match &view.step.input {
            Input::CheckOutRequested { id, deadline, purpose, .. } => {
                let limit = deadline.map(|deadline| deadline.saturating_since(now));
                let number = self.add_request(now, limit, *purpose);
                self.waiting.insert(*id, number);
            }
            Input::CheckedIn { id, health, .. } => self.checked_in(now, *id, health, cleared),
            Input::Handshaken { id, service, .. } => {
                self.services.extend(service.map(|service| (*id, service)));
            }
            Input::EstablishSucceeded { id, .. } => self.opened(view, *id, None, None),
            Input::EstablishFailed { id, cause, overloaded } => {
                let failure = FailedOpening { cause: cause.clone(), overloaded: *overloaded };
                self.opened(view, *id, Some(failure), cleared);
            }
            Input::IdleClosedByPeer { cause, .. } => {
                self.event(now, Event::PeerCloses(cause.clone()));
            }
            Input::RetireConnections => self.event(now, Event::Retire),
            Input::ReleaseIdle => self.event(now, Event::Release),
            Input::SetOptions { options } => self.event(now, Event::SetOptions(options.clone())),
            Input::Ready => self.ready(now),
            Input::Clear { cause, interrupt, service } => {
                let (cause, interrupt, service) = (cause.clone(), *interrupt, *service);
                let number = self.workload.clears.len() as u32;
                let clear = Clear { cause, interrupt, service, ready_after: None };
                self.workload.clears.push(clear);
                self.event(now, Event::Clear(number));
                self.just_cleared = Some(number);
                self.not_ready_since.push((number, now));
            }
            Input::Close | Input::ResetAfterFork => self.has_ended = true,
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::DrainSucceeded { .. }
            | Input::DrainFailed { .. }
            | Input::DrainProgress { .. }
            | Input::Timer => {}
        }
    }

    fn event(&mut self, now: Instant, event: Event) {
        self.workload.events.push((now, event));
    }

    /// Each clear brings its own Ready with it.
    fn ready(&mut self, now: Instant) {
        if self.not_ready_since.is_empty() {
            return self.event(now, Event::Ready);
        }
        for (number, since) in self.not_ready_since.drain(..) {
            let clear = &mut self.workload.clears[number as usize];
            clear.ready_after = Some(now.saturating_since(since));
        }
    }

    fn checked_in(
        &mut self,
        now: Instant,
        id: ConnId,
        health: &Health<Cause>,
        cleared: Option<u32>,
    ) {
        let Some(number) = self.in_use.remove(&id) else { return };
        match health {
            Health::Healthy => {}
            Health::Errored(cause) | Health::PendingResponse { cause, .. } => {
                let clear = self.belongs(cleared);
                self.workload.failures.insert(number, (cause.clone(), clear));
            }
        }
        let request = &mut self.workload.requests[number as usize];
        request.hold(now.saturating_since(request.answered()), Fate::Served);
    }

    fn opened(
        &mut self,
        view: &View<'_>,
        id: ConnId,
        failure: Option<FailedOpening>,
        cleared: Option<u32>,
    ) {
        let known = view.holders.connections.get(&id.number());
        let Some(pending) = known.filter(|it| it.activity == Activity::Pending) else { return };
        let (clear, since) = (self.belongs(cleared), pending.since);
        let (lasts, service) = (view.pool.now().saturating_since(since), self.services.remove(&id));
        self.workload.openings.push((since, Opening { lasts, service, failure, clear }));
    }

    /// The clear that came before a failure happens whenever that failure happens, and not at its time.
    fn belongs(&mut self, cleared: Option<u32>) -> Option<u32> {
        let number = cleared?;
        let last = self.workload.events.pop();
        debug_assert!(matches!(last, Some((_, Event::Clear(last))) if last == number));
        Some(number)
    }

    fn action(&mut self, now: Instant, action: &Action<Traced>) {
        let Action::Deliver { waiter, outcome } = action else { return };
        let Some(number) = self.waiting.remove(waiter) else { return };
        let request = &mut self.workload.requests[number as usize];
        let fate = match outcome {
            Ok((id, ())) => {
                self.in_use.insert(*id, number);
                Fate::Held
            }
            Err(CheckOutError::Cancelled) => Fate::Cancelled,
            Err(_) => Fate::Failed,
        };
        request.answer(now.saturating_since(request.asked), fate);
    }

    pub(super) fn finish(self) -> Workload {
        let Self { mut workload, tally, in_use, waiting, .. } = self;
        for number in in_use.into_values() {
            let request = &mut workload.requests[number as usize];
            request.hold(workload.end.saturating_since(request.answered()), Fate::Held);
        }
        for number in waiting.into_values() {
            let request = &mut workload.requests[number as usize];
            request.answer(workload.end.saturating_since(request.asked), Fate::Waiting);
        }
        workload.requests.shrink_to_fit();
        workload.openings.sort_by_key(|(since, _)| *since);
        workload.recorded = tally.finish(workload.end);
        workload
    }
}

//! The counts of a pool as the sum of its events.
//!
//! Needs no model: a subscriber that only receives events has to arrive at the counts in the pool's
//! snapshot.

use crate::model::reason_of;
use cenote_core::pool::{
    Action, CloseReason, ConnId, ConnectionState, Event, PoolOptions, PoolState, PoolTypes,
    Snapshot, Status,
};

/// The counts of a pool according to its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    status: Status,
    /// Those that are not closed, with their numbers in ascending order.
    connections: Vec<(u64, Stage)>,
    created: u64,
    /// Check-outs that started and have no outcome.
    outstanding: u64,
}

/// The state of a connection according to its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Created,
    /// After ConnectionReady, until the next event of the same input; then it is available.
    Ready,
    Available,
    /// A request waits for the end of its drain.
    Draining,
    CheckedOut,
    /// As `Ready`, after ConnectionCheckedIn.
    CheckedIn,
}

impl Stage {
    fn of(state: &ConnectionState) -> Self {
        match state {
            ConnectionState::Pending { .. } => Self::Created,
            ConnectionState::Available
            | ConnectionState::PendingResponse { .. }
            | ConnectionState::Draining { owner: None, .. } => Self::Available,
            ConnectionState::Draining { owner: Some(_), .. } => Self::Draining,
            ConnectionState::InUse { .. } => Self::CheckedOut,
        }
    }
}

impl Ledger {
    /// The machine's state in terms of events.
    pub fn of<S: PoolTypes>(machine: &PoolState<S>) -> Self {
        let snapshot = machine.snapshot();
        let mut connections: Vec<_> = machine
            .connections()
            .map(|connection| (connection.id.number(), Stage::of(&connection.state)))
            .collect();
        connections.sort_unstable_by_key(|&(number, _)| number);
        Self {
            status: snapshot.status,
            connections,
            created: snapshot.connections_created,
            outstanding: machine.waiters().count() as u64,
        }
    }

    /// Adds the actions of one input, and compares the sum with the machine's snapshot.
    ///
    /// # Errors
    ///
    /// The first action that is out of order, or the wrong sum.
    // PS-22
    pub fn fold<S: PoolTypes>(
        &mut self,
        before: &Snapshot,
        actions: &[Action<S>],
        after: &PoolState<S>,
    ) -> Result<(), String>
    where
        S::Cause: PartialEq,
    {
        let mut previous = None;
        for action in actions {
            self.check_order(previous, action)?;
            if let Action::EmitEvent(event) = action {
                self.add(event)?;
            }
            previous = Some(action);
        }
        for (_, stage) in &mut self.connections {
            if let Stage::Ready | Stage::CheckedIn = stage {
                *stage = Stage::Available;
            }
        }
        let machine = Self::of(after);
        if *self != machine {
            return Err(format!("the events add up to {self:?}, the snapshot is {machine:?}"));
        }
        self.check_counts(before, &after.snapshot(), waits_for_its_time(after))
    }

    fn add<C>(&mut self, event: &Event<C>) -> Result<(), String> {
        let broken = |ledger: &Self| Err(format!("{} does not fit {ledger:?}", event.name()));
        match event {
            Event::ConnectionPoolCreated { .. } => return broken(self),
            Event::ConnectionPoolReady => {
                if self.status != Status::Paused {
                    return broken(self);
                }
                self.status = Status::Ready;
            }
            Event::ConnectionPoolCleared { service_id, .. } => match (self.status, service_id) {
                (Status::Ready, None) => self.status = Status::Paused,
                (Status::Ready | Status::Paused, Some(_)) => {}
                (Status::Paused | Status::Closed, _) => return broken(self),
            },
            Event::ConnectionPoolClosed => {
                let any_left = |stage: &Stage| *stage != Stage::CheckedOut;
                if self.status == Status::Closed
                    || self.connections.iter().any(|(_, stage)| any_left(stage))
                {
                    return broken(self);
                }
                self.status = Status::Closed;
            }
            Event::ConnectionCreated { connection_id } => {
                if *connection_id != self.created + 1 || self.status != Status::Ready {
                    return broken(self);
                }
                self.created += 1;
                self.connections.push((*connection_id, Stage::Created));
            }
            Event::ConnectionReady { connection_id, .. } => {
                return self.go(*connection_id, &[Stage::Created], Stage::Ready);
            }
            Event::ConnectionClosed { connection_id, reason, error } => {
                if error.is_some() != (*reason == CloseReason::Error) {
                    return broken(self);
                }
                let Ok(place) = self.place(*connection_id) else { return broken(self) };
                self.connections.remove(place);
            }
            Event::ConnectionCheckOutStarted { .. } => self.outstanding += 1,
            Event::ConnectionCheckOutFailed { error, .. } => {
                if self.outstanding == 0 || reason_of(error) != error.reason() {
                    return broken(self);
                }
                self.outstanding -= 1;
            }
            Event::ConnectionCheckedOut { connection_id, .. } => {
                if self.outstanding == 0 {
                    return broken(self);
                }
                self.outstanding -= 1;
                let from = [Stage::Ready, Stage::Available, Stage::CheckedIn];
                return self.go(*connection_id, &from, Stage::CheckedOut);
            }
            Event::ConnectionCheckedIn { connection_id } => {
                return self.go(*connection_id, &[Stage::CheckedOut], Stage::CheckedIn);
            }
            Event::ConnectionPendingResponseStarted { connection_id, .. } => {
                let from = [Stage::Available, Stage::CheckedIn];
                return self.go(*connection_id, &from, Stage::Draining);
            }
            // Each Started is followed by one of these.
            Event::ConnectionPendingResponseSucceeded { connection_id, .. } => {
                return self.go(*connection_id, &[Stage::Draining], Stage::Ready);
            }
            Event::ConnectionPendingResponseFailed { connection_id, .. } => {
                return self.go(*connection_id, &[Stage::Draining], Stage::Available);
            }
            _ => return broken(self),
        }
        Ok(())
    }

    // EV-26
    fn go(&mut self, number: u64, from: &[Stage], to: Stage) -> Result<(), String> {
        let place = self.place(number);
        match place.ok().and_then(|place| self.connections.get_mut(place)) {
            Some((_, stage)) if from.contains(stage) => {
                *stage = to;
                Ok(())
            }
            other => {
                let stage = other.map(|(_, stage)| stage);
                Err(format!("connection {number} goes from {stage:?} to {to:?}"))
            }
        }
    }

    fn place(&self, number: u64) -> Result<usize, usize> {
        self.connections.binary_search_by_key(&number, |&(number, _)| number)
    }

    fn stage(&self, id: &ConnId) -> Option<Stage> {
        let place = self.place(id.number()).ok()?;
        self.connections.get(place).map(|&(_, stage)| stage)
    }

    /// The order of actions: an event comes before the action that it announces.
    // KX-01, OUT-15, CC-02.
    fn check_order<S: PoolTypes>(
        &self,
        previous: Option<&Action<S>>,
        action: &Action<S>,
    ) -> Result<(), String>
    where
        S::Cause: PartialEq,
    {
        let event = match previous {
            Some(Action::EmitEvent(event)) => Some(event),
            Some(
                Action::StartEstablish { .. }
                | Action::AbortEstablish { .. }
                | Action::Deliver { .. }
                | Action::CloseSocket { .. }
                | Action::Interrupt { .. }
                | Action::StartDrain { .. }
                | Action::AbortDrain { .. }
                | Action::ReportLeak { .. }
                | Action::ReportUnanswered { .. },
            )
            | None => None,
        };
        let in_order = match action {
            Action::StartEstablish { id, .. } => {
                matches!(event, Some(Event::ConnectionCreated { connection_id })
                    if *connection_id == id.number())
            }
            Action::AbortEstablish { id } | Action::AbortDrain { id } => closes(event, id.number()),
            Action::StartDrain { id, .. } => {
                matches!(event, Some(Event::ConnectionPendingResponseStarted { connection_id, .. })
                    if *connection_id == id.number())
            }
            Action::CloseSocket { id, .. } => {
                // The pool had already closed it, with an event.
                closes(event, id.number()) || event.is_none()
            }
            Action::Deliver { outcome: Ok((id, _)), .. } => {
                matches!(event, Some(Event::ConnectionCheckedOut { connection_id, .. })
                    if *connection_id == id.number())
            }
            Action::Deliver { outcome: Err(told), .. } => {
                matches!(event, Some(Event::ConnectionCheckOutFailed { error, .. })
                    if error == told)
            }
            Action::Interrupt { id } | Action::ReportLeak { id, .. } => {
                self.stage(id) == Some(Stage::CheckedOut)
            }
            Action::ReportUnanswered { id, .. } => self.stage(id) == Some(Stage::Created),
            Action::EmitEvent(_) => true,
        };
        if in_order { Ok(()) } else { Err("an action does not follow its event".to_owned()) }
    }

    // PS-11, PS-12, PS-20, WQ-07. A count above a limit that was lowered may stay but not grow.
    fn check_counts(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        is_paced: bool,
    ) -> Result<(), String> {
        let stages = |wanted| self.connections.iter().filter(|(_, stage)| *stage == wanted).count();
        let in_use = stages(Stage::CheckedOut) + stages(Stage::Draining);
        let counted = [stages(Stage::Created), stages(Stage::Available), in_use];
        let told = [after.pending as usize, after.available as usize, after.in_use as usize];
        // A request whose time is over does not wait for a late reply.
        let clean = after.available - after.pending_response;
        let max = after.max_pool_size.unwrap_or(u32::MAX);
        let full = after.total >= max || after.pending >= after.max_connecting;
        let holds = counted == told
            && after.total == after.pending + after.available + after.in_use
            && after.total <= max.max(before.total)
            && after.pending <= after.max_connecting.max(before.pending)
            && (after.waiting == 0 || (clean == 0 && (full || is_paced)));
        if holds { Ok(()) } else { Err(format!("the counts are wrong: {after}")) }
    }
}

fn closes<C>(event: Option<&Event<C>>, number: u64) -> bool {
    matches!(event, Some(Event::ConnectionClosed { connection_id, .. }) if *connection_id == number)
}

/// Whether a connection that requests wait for is being established, or will be without another input, because a policy
/// paces them.
fn waits_for_its_time<S: PoolTypes>(machine: &PoolState<S>) -> bool {
    is_paced(machine.options())
        && (machine.snapshot().pending > 0 || machine.next_deadline().is_some())
}

/// Whether a connection may have to wait for its time, by a policy of the pool.
pub(crate) fn is_paced(options: &PoolOptions) -> bool {
    options.adaptive_connecting == Some(true) || options.overload_backoff.is_some()
}

//! Folding: a pool's counts as the sum of the events that it emitted.
//!
//! Needs no model. Whoever only subscribes to events has to arrive at what the machine says about
//! itself, or one of the two lies (PS-22).

use std::collections::BTreeMap;

use crate::model::reason_of;
use cenote_core::pool::{
    Action, CloseReason, ConnectionState, Event, PoolState, PoolTypes, Snapshot, Status,
};

/// What events say about a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    status: Status,
    connections: BTreeMap<u64, Stage>,
    created: u64,
    /// Requests that have started and have no outcome.
    outstanding: u64,
}

/// What events say about one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Created,
    /// Between ConnectionReady and whatever follows in the same breath; then it is available.
    Ready,
    Available,
    CheckedOut,
    /// As `Ready`, after ConnectionCheckedIn.
    CheckedIn,
}

impl Ledger {
    /// What the machine says about itself, in terms of events.
    pub fn of<S: PoolTypes>(machine: &PoolState<S>) -> Self {
        let snapshot = machine.snapshot();
        let connections = machine
            .connections()
            .map(|connection| {
                let stage = match connection.state {
                    ConnectionState::Pending { .. } => Stage::Created,
                    ConnectionState::Available => Stage::Available,
                    ConnectionState::InUse { .. } => Stage::CheckedOut,
                };
                (connection.id.number(), stage)
            })
            .collect();
        Self {
            status: snapshot.status,
            connections,
            created: snapshot.connections_created,
            outstanding: machine.waiters().count() as u64,
        }
    }

    /// Adds the actions that one input caused, and compares with what the machine says after it.
    ///
    /// # Errors
    ///
    /// The first action that breaks the grammar, or the sum that is wrong.
    pub fn fold<S: PoolTypes>(
        mut self,
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
        for stage in self.connections.values_mut() {
            if let Stage::Ready | Stage::CheckedIn = stage {
                *stage = Stage::Available;
            }
        }
        let told = Self::of(after);
        if self != told {
            return Err(format!("the events add up to {self:?}, the machine says {told:?}"));
        }
        self.check_counts(before, &after.snapshot())
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
                if self.status == Status::Closed || self.connections.values().any(any_left) {
                    return broken(self);
                }
                self.status = Status::Closed;
            }
            Event::ConnectionCreated { connection_id } => {
                if *connection_id != self.created + 1 || self.status != Status::Ready {
                    return broken(self);
                }
                self.created += 1;
                self.connections.insert(*connection_id, Stage::Created);
            }
            Event::ConnectionReady { connection_id, .. } => {
                return self.go(*connection_id, &[Stage::Created], Stage::Ready);
            }
            Event::ConnectionClosed { connection_id, reason, error } => {
                if error.is_some() != (*reason == CloseReason::Error) {
                    return broken(self);
                }
                if self.connections.remove(connection_id).is_none() {
                    return broken(self);
                }
            }
            Event::ConnectionCheckOutStarted => self.outstanding += 1,
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
        }
        Ok(())
    }

    fn go(&mut self, number: u64, from: &[Stage], to: Stage) -> Result<(), String> {
        match self.connections.get_mut(&number) {
            Some(stage) if from.contains(stage) => {
                *stage = to;
                Ok(())
            }
            other => Err(format!("connection {number} goes from {other:?} to {to:?}")),
        }
    }

    /// What follows directly upon what: the event is told before the deed (KX-01, OUT-15, CC-02).
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
                | Action::ReportLeak { .. },
            )
            | None => None,
        };
        let in_order = match action {
            Action::StartEstablish { id, .. } => {
                matches!(event, Some(Event::ConnectionCreated { connection_id })
                    if *connection_id == id.number())
            }
            Action::AbortEstablish { id } => closes(event, id.number()),
            Action::CloseSocket { id, .. } => {
                // One that the pool had closed before has no event any more.
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
                self.connections.get(&id.number()) == Some(&Stage::CheckedOut)
            }
            Action::EmitEvent(_) => true,
        };
        if in_order { Ok(()) } else { Err("an action out of the order of its event".to_owned()) }
    }

    /// PS-11, PS-12, PS-20, WQ-07. What is above a limit that shrank may stay but not grow.
    fn check_counts(&self, before: &Snapshot, after: &Snapshot) -> Result<(), String> {
        let stages = |wanted| self.connections.values().filter(|&&stage| stage == wanted).count();
        let counted = [stages(Stage::Created), stages(Stage::Available), stages(Stage::CheckedOut)];
        let told = [after.pending as usize, after.available as usize, after.in_use as usize];
        let max = after.max_pool_size.unwrap_or(u32::MAX);
        let full = after.total >= max || after.pending >= after.max_connecting;
        let holds = counted == told
            && after.total == after.pending + after.available + after.in_use
            && after.total <= max.max(before.total)
            && after.pending <= after.max_connecting.max(before.pending)
            && (after.waiting == 0 || (after.available == 0 && full));
        if holds { Ok(()) } else { Err(format!("the counts are wrong: {after}")) }
    }
}

fn closes<C>(event: Option<&Event<C>>, number: u64) -> bool {
    matches!(event, Some(Event::ConnectionClosed { connection_id, .. }) if *connection_id == number)
}

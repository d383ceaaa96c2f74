//! Checks that each payload is in exactly one place, and that none is lost.

use std::collections::{BTreeMap, BTreeSet};

use cenote_core::pool::{Action, ConnectionState, Input, PoolState};

use super::tagged::Tagged;

/// The places of all payloads.
#[derive(Debug, Default)]
pub(super) struct PayloadPlaces {
    /// The waiters in the pool.
    waiters: BTreeSet<u64>,
    /// The connections in the pool.
    pooled: BTreeSet<u64>,
    /// The delivered connections and those that the shell drains, by number.
    held: BTreeMap<u64, u64>,
    last: u64,
}

impl PayloadPlaces {
    /// A new payload.
    pub(super) fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The payload with which a connection is checked in; a new one if the connection is not in
    /// use.
    pub(super) fn held(&mut self, number: u64) -> u64 {
        match self.held.get(&number) {
            Some(&payload) => payload,
            None => self.fresh(),
        }
    }

    /// Updates the places after an accepted input and its actions.
    pub(super) fn follow(
        &mut self,
        input: &Input<Tagged>,
        actions: &[Action<Tagged>],
        machine: &PoolState<Tagged>,
    ) -> Result<(), String> {
        self.add_input(input);
        for action in actions {
            self.add_action(action)?;
        }
        let outstanding = machine.waiters().count();
        if self.waiters.len() != outstanding || self.pooled.len() != available(machine) {
            return Err(format!("payloads were lost or duplicated: {self:?}"));
        }
        Ok(())
    }

    fn add_input(&mut self, input: &Input<Tagged>) {
        match input {
            Input::CheckOutRequested { waiter, .. } => {
                self.waiters.insert(*waiter);
            }
            Input::CheckedIn { id, conn, .. } | Input::DrainSucceeded { id, conn } => {
                self.held.remove(&id.number());
                self.pooled.insert(*conn);
            }
            Input::EstablishSucceeded { conn, .. } => {
                self.pooled.insert(*conn);
            }
            Input::DrainFailed { id, .. } => drop(self.held.remove(&id.number())),
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::EstablishFailed { .. }
            | Input::IdleClosedByPeer { .. }
            | Input::DrainProgress { .. }
            | Input::RetireConnections
            | Input::ReleaseIdle
            | Input::Ready
            | Input::Close
            | Input::Timer
            | Input::ResetAfterFork
            | Input::Clear { .. }
            | Input::SetOptions { .. } => {}
        }
    }

    fn add_action(&mut self, action: &Action<Tagged>) -> Result<(), String> {
        match action {
            Action::Deliver { waiter, outcome } => {
                if !self.waiters.remove(waiter) {
                    return Err(format!("waiter {waiter} was answered twice, or is unknown"));
                }
                if let Ok((id, conn)) = outcome {
                    self.leave_pool(*conn)?;
                    self.held.insert(id.number(), *conn);
                }
                Ok(())
            }
            Action::CloseSocket { conn, .. } => self.leave_pool(*conn),
            Action::StartDrain { id, conn } => {
                self.leave_pool(*conn)?;
                self.held.insert(id.number(), *conn);
                Ok(())
            }
            Action::AbortDrain { id } => {
                self.held.remove(&id.number());
                Ok(())
            }
            Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => Ok(()),
        }
    }

    fn leave_pool(&mut self, conn: u64) -> Result<(), String> {
        if self.pooled.remove(&conn) {
            return Ok(());
        }
        Err(format!("connection payload {conn} leaves the pool but is not in it"))
    }
}

/// Those whose payload the machine has: the shell has that of a draining one.
fn available(machine: &PoolState<Tagged>) -> usize {
    let is_here = |state: ConnectionState| {
        matches!(state, ConnectionState::Available | ConnectionState::PendingResponse { .. })
    };
    machine.connections().filter(|connection| is_here(connection.state)).count()
}

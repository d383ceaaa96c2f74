//! Conservation of payloads: each is in exactly one place, and no place loses any.

use std::collections::{BTreeMap, BTreeSet};

use cenote_core::pool::{Action, Input, PoolState};

use super::tagged::Tagged;

/// Where every payload is.
#[derive(Debug, Default)]
pub(super) struct PayloadSource {
    /// Waiters that the pool keeps.
    waiters: BTreeSet<u64>,
    /// Connections that the pool keeps.
    pooled: BTreeSet<u64>,
    /// Connections that were delivered, by number.
    held: BTreeMap<u64, u64>,
    last: u64,
}

impl PayloadSource {
    /// A payload that was never there before.
    pub(super) fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// What the holder of a connection gives back; a payload of their own from those who hold none.
    pub(super) fn held(&mut self, number: u64) -> u64 {
        match self.held.get(&number) {
            Some(&payload) => payload,
            None => self.fresh(),
        }
    }

    /// Follows an accepted input and what it caused.
    pub(super) fn follow(
        &mut self,
        input: &Input<Tagged>,
        actions: &[Action<Tagged>],
        machine: &PoolState<Tagged>,
    ) -> Result<(), String> {
        self.take_in(input);
        for action in actions {
            self.give_out(action)?;
        }
        let outstanding = machine.waiters().count();
        if self.waiters.len() != outstanding || self.pooled.len() != available(machine) {
            return Err(format!("payloads got lost or doubled: {self:?}"));
        }
        Ok(())
    }

    fn take_in(&mut self, input: &Input<Tagged>) {
        match input {
            Input::CheckOutRequested { waiter, .. } => {
                self.waiters.insert(*waiter);
            }
            Input::CheckedIn { id, conn, .. } => {
                self.held.remove(&id.number());
                self.pooled.insert(*conn);
            }
            Input::EstablishSucceeded { conn, .. } => {
                self.pooled.insert(*conn);
            }
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::EstablishFailed { .. }
            | Input::IdleClosedByPeer { .. }
            | Input::Ready
            | Input::Close
            | Input::Timer
            | Input::ResetAfterFork
            | Input::Clear { .. }
            | Input::SetOptions { .. } => {}
        }
    }

    fn give_out(&mut self, action: &Action<Tagged>) -> Result<(), String> {
        match action {
            Action::Deliver { waiter, outcome } => {
                if !self.waiters.remove(waiter) {
                    return Err(format!("waiter {waiter} is told twice, or never asked"));
                }
                if let Ok((id, conn)) = outcome {
                    self.leave_pool(*conn)?;
                    self.held.insert(id.number(), *conn);
                }
                Ok(())
            }
            Action::CloseSocket { conn, .. } => self.leave_pool(*conn),
            Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::EmitEvent(_) => Ok(()),
        }
    }

    fn leave_pool(&mut self, conn: u64) -> Result<(), String> {
        if self.pooled.remove(&conn) {
            return Ok(());
        }
        Err(format!("connection payload {conn} leaves the pool, where it is not"))
    }
}

fn available(machine: &PoolState<Tagged>) -> usize {
    machine.snapshot().available as usize
}

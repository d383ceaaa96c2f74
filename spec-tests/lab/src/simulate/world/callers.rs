//! The callers that use the pool: each checks out a connection, uses it, and checks it in.

use std::time::Duration;

use cenote_core::pool::{CheckOutError, ConnId, Input, Purpose, WaiterId};

use super::{Due, FAST, World};
use crate::simulate::accounting::SocketState;
use crate::simulate::caller_profile::Request;
use crate::simulate::coverage::Situation;

impl World<'_> {
    pub(super) fn ask(&mut self, caller: u32) -> Result<(), String> {
        if !self.may_ask(caller) {
            return Ok(());
        }
        let id = self.accounting.ask(caller);
        let plan = self.plan;
        let request = if self.is_recovering {
            Request::default()
        } else {
            plan.profile.request(&mut self.random, [plan.open, plan.work])
        };
        self.coverage.count_request(&request);
        if plan.profile.bursts && !self.is_recovering {
            self.coverage.count(Situation::Burst);
        }
        if let Some(after) = request.cancels_after {
            self.plan_in(after, Due::Cancel { request: id });
        }
        let (deadline, purpose) = (request.deadline(self.now), request.purpose);
        self.feed(Input::CheckOutRequested { id, waiter: id.0, deadline, purpose })
    }

    /// Most callers wait for the pool to be ready, as clients do that select a server first.
    fn may_ask(&mut self, caller: u32) -> bool {
        if self.subject.is_ready() {
            return true;
        }
        let waits = if self.is_recovering {
            !self.is_closed
        } else {
            self.plan.profile.waits_for_ready && !self.random.one_in(16)
        };
        if waits {
            self.waiting_for_ready.push(caller);
        }
        !waits
    }

    /// The request may have been answered long ago; then the pool must ignore this.
    pub(super) fn cancel(&mut self, request: WaiterId) -> Result<(), String> {
        let waits = self.accounting.is_waiting(request);
        self.coverage.count(if waits { Situation::Cancelled } else { Situation::CancelledTooLate });
        self.feed(Input::CheckOutCancelled { id: request })?;
        match self.accounting.is_waiting(request) {
            true => Err(format!("{request} was cancelled and still waits")),
            false => Ok(()),
        }
    }

    pub(super) fn delivered(
        &mut self,
        request: WaiterId,
        outcome: &Result<(ConnId, u64), CheckOutError<u64>>,
    ) -> Result<(), String> {
        match *outcome {
            Ok((id, tag)) => {
                self.subject.expect_turn(&self.accounting, request, id)?;
                let caller = self.accounting.deliver(request, id, tag)?;
                self.use_connection(id.number());
                if self.is_recovering
                    && let Some(served) = self.served.get_mut(caller as usize)
                {
                    *served = true;
                }
            }
            Err(ref error) => {
                self.coverage.count_error(error);
                let caller = self.accounting.answer(request)?;
                self.come_again(caller);
            }
        }
        Ok(())
    }

    /// A cursor is opened with the first reply, or a transaction ends.
    pub(super) fn repurpose(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        let purpose = if self.random.flip() { Purpose::Cursor } else { Purpose::Other };
        match self.accounting.socket(connection) {
            Some(socket) if socket.is_used(use_number) => {
                self.feed(Input::Repurposed { id: socket.id, purpose })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The caller checks in its connection.
    pub(super) fn finish(&mut self, connection: u64, use_number: u64) -> Result<(), String> {
        let Some(socket) = self.accounting.socket(connection) else { return Ok(()) };
        if socket.use_number != use_number {
            return Ok(());
        }
        let caller = match socket.state {
            SocketState::Used { caller } => caller,
            SocketState::Inherited { caller } => {
                self.coverage.count(Situation::InheritedComesBack);
                caller
            }
            SocketState::Opening { .. }
            | SocketState::Aborted
            | SocketState::Draining
            | SocketState::DrainAborted
            | SocketState::Idle => return Ok(()),
        };
        self.come_again(caller);
        let health = self.health(&socket)?;
        let Some((id, conn)) = self.accounting.give_back(connection) else { return Ok(()) };
        self.feed(Input::CheckedIn { id, conn, health })
    }

    /// The pool interrupts a use: the caller checks in the connection at once, broken; or its work was
    /// done before that.
    pub(super) fn interrupted(&mut self, id: ConnId) -> Result<(), String> {
        self.accounting.expect_used(id)?;
        self.coverage.count(Situation::Interrupted);
        let connection = id.number();
        let is_too_late = !self.is_recovering && self.random.one_in(4);
        if !is_too_late && let Some(socket) = self.accounting.socket_mut(connection) {
            socket.is_dead = true;
        }
        if let Some(socket) = self.accounting.socket(connection) {
            let due = Due::Finish { connection, use_number: socket.use_number };
            self.plan_in(Duration::ZERO, due);
        }
        Ok(())
    }

    /// All callers check in what they have and check out once more; what is being opened succeeds or fails.
    pub(super) fn finish_everything(&mut self) {
        let all: Vec<_> = self.accounting.sockets().copied().collect();
        for socket in all {
            let (connection, use_number) = (socket.id.number(), socket.use_number);
            match socket.state {
                SocketState::Opening { .. } | SocketState::Aborted => {
                    self.finish_opening(connection);
                }
                SocketState::Used { .. } | SocketState::Inherited { .. } => {
                    self.plan_in(FAST, Due::Finish { connection, use_number });
                }
                SocketState::Draining | SocketState::DrainAborted => {
                    self.plan_in(FAST, Due::Drained { connection });
                }
                SocketState::Idle => {}
            }
        }
        for caller in 0..self.plan.callers {
            self.plan_in(FAST, Due::Ask { caller });
        }
    }

    fn come_again(&mut self, caller: u32) {
        if self.is_closed {
            return;
        }
        let is_done = self.is_recovering && self.served.get(caller as usize) == Some(&true);
        if !is_done {
            let after = self.think_time();
            self.plan_in(after, Due::Ask { caller });
        }
    }

    /// The time until a caller checks out again: in a burst, the time at which all others do.
    pub(super) fn think_time(&mut self) -> Duration {
        if self.plan.profile.bursts && !self.is_recovering {
            let beat = u64::try_from(self.plan.heartbeat.as_nanos()).unwrap_or(u64::MAX);
            return Duration::from_nanos(beat - self.now.as_nanos() % beat);
        }
        self.time(self.plan.think)
    }
}

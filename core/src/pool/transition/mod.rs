//! From an input to its transition.

mod at_once;
mod check_in;
mod check_out;
mod clear;
mod close_connection;
mod close_pool;
mod drain;
mod establish;
mod fork;
mod maintenance;
mod outcome;
mod pace;
mod release_idle;
mod retire;
// BG-10
mod set_options;
mod shed;
mod validate;

use super::input::Input;
use super::misuse::Misuse;
use super::sink::ActionSink;
use super::state::PoolState;
use super::state::lists::List;
use super::time::Instant;
use super::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Takes one input and emits what follows from it, all of it, in order.
    ///
    /// `now` may stand still. If it runs backwards, the last one counts and
    /// [`Snapshot::clock_regressions`](super::Snapshot::clock_regressions) says so.
    ///
    /// # Errors
    ///
    /// An input that makes no sense in this state comes back, payload and all, with the reason.
    /// Then nothing has changed and nothing has been emitted.
    // Inlined into the caller, which knows the variant of its input, so that the choice is
    // made by the compiler; it halves the instructions of a warm pair.
    #[inline(always)]
    pub fn handle(
        &mut self,
        now: Instant,
        input: Input<S>,
        out: &mut impl ActionSink<S>,
    ) -> Result<(), Misuse<S>> {
        if let Err(reason) = self.validate(&input) {
            return Err(Misuse { input, reason });
        }
        self.proceed(now, input, out);
        Ok(())
    }

    /// [`handle`](Self::handle), once the input is known to be [valid](Self::validate).
    #[inline(always)]
    #[expect(clippy::wildcard_enum_match_arm, reason = "handle_other names every variant")]
    pub(crate) fn proceed(&mut self, now: Instant, input: Input<S>, out: &mut impl ActionSink<S>) {
        self.advance(now);
        if !self.queue.is_empty() {
            self.time_out_requests(out);
        }
        match input {
            Input::CheckOutRequested { id, waiter, deadline, purpose } => {
                self.check_out(id, waiter, deadline, purpose, out);
            }
            Input::CheckedIn { id, conn, health } => self.check_in(id, conn, health, out),
            other => self.handle_other(other, out),
        }
        if !self.queue.is_empty() {
            self.serve_requests(out);
        }
        if self.is_below_minimum() {
            self.populate(out);
        }
    }

    /// The inputs that are not part of every operation, apart, so that the others stay small.
    #[inline(never)]
    fn handle_other(&mut self, input: Input<S>, out: &mut impl ActionSink<S>) {
        if self.connections.len(List::Draining) > 0 {
            let now = self.now;
            self.time_out_drain_owners(|deadline| deadline < now, out);
        }
        if self.owners_due.is_some() {
            let now = self.now;
            self.time_out_owners(|deadline| deadline < now, out);
        }
        match input {
            Input::CheckOutRequested { .. } | Input::CheckedIn { .. } => {
                unreachable!("handled in `proceed`")
            }
            Input::CheckOutCancelled { id } => self.cancel_check_out(id, out),
            Input::Repurposed { id, purpose } => self.connections.repurpose(id, purpose),
            Input::Handshaken { id, service, clears_at_hello } => {
                self.handshaken(id, service, clears_at_hello, out);
            }
            Input::EstablishSucceeded { id, conn } => self.establish_succeeded(id, conn, out),
            Input::EstablishFailed { id, cause, overloaded } => {
                self.establish_failed(id, cause, overloaded, out);
            }
            Input::IdleClosedByPeer { id, cause } => self.idle_closed_by_peer(id, cause, out),
            Input::DrainSucceeded { id, conn } => self.drain_succeeded(id, conn, out),
            Input::DrainFailed { id, cause } => self.drain_failed(id, cause, out),
            Input::DrainProgress { id } => self.drain_progress(id),
            Input::RetireConnections => self.retire_connections(out),
            Input::ReleaseIdle => self.release_idle(out),
            Input::Ready => self.ready(out),
            Input::Close => self.close(out),
            Input::Timer => self.run_maintenance(out),
            Input::ResetAfterFork => self.reset_after_fork(out),
            Input::Clear { cause, interrupt, service: None } => self.clear(cause, interrupt, out),
            Input::Clear { cause, interrupt: _, service: Some(service) } => {
                self.clear_service(cause, service, out);
            }
            Input::SetOptions { options } => self.set_options(*options, out),
        }
        if self.queue.is_empty() {
            self.standing_since = None;
        }
        if self.pending_responses.next_due().is_some() {
            self.schedule_drains();
        }
    }
}

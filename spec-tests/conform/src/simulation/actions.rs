//! Carries out the actions of the state machine.

use std::sync::Arc;

use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::pool::{Action, ConnId, Event, Input, ServiceId};
use cenote_core::sdam::{self, Context, PoolVerdict};

use super::pool::{Simulated, SimulatedConnection, SimulatedPool, Socket};
use super::server::Answer;
use crate::scenario::Scenario;

impl SimulatedPool {
    /// An establishment ends. A failure is shown to SDAM first, which ignores it if the pool has been
    /// cleared since, and can clear the pool otherwise.
    // SD-20, TF-18, T-03
    pub(super) fn established(&mut self, id: ConnId, result: Result<(), ConnectionError>) {
        match result {
            Ok(()) => {
                let is_new = self.sockets.insert(id.number());
                assert!(is_new, "a connection is established once");
                if self.load_balanced {
                    let service = id.number() % Scenario::SERVICES as u64;
                    let service = Some(ServiceId([service as u8; 12]));
                    self.feed(Input::Handshaken { id, service, clears_at_hello: None });
                }
                self.feed(Input::EstablishSucceeded { id, conn: Socket(id.number()) });
            }
            Err(cause) => {
                self.show_to_sdam(id, &cause);
                let overloaded = cause.is_overload();
                self.feed(Input::EstablishFailed { id, cause, overloaded });
            }
        }
    }

    pub(super) fn show_to_sdam(&mut self, id: ConnId, cause: &ConnectionError) {
        let context = Context {
            load_balanced: self.load_balanced,
            current_generation: !self.state.is_stale(id),
            topology_version: None,
        };
        match sdam::verdict(&context, cause).pool {
            PoolVerdict::Keep => {}
            PoolVerdict::Clear { interrupt } => {
                self.feed(Input::Clear { cause: cause.clone(), interrupt, service: None });
            }
            PoolVerdict::ClearService => {
                let service = self.state.service_of(id);
                let cause = cause.clone();
                self.feed(Input::Clear { cause, interrupt: false, service });
            }
        }
    }

    pub(super) fn feed(&mut self, input: Input<Simulated>) {
        let mut actions = Vec::new();
        if let Err(misuse) = self.state.handle(self.now, input, &mut actions) {
            panic!("the simulation keeps to the contract: {misuse}");
        }
        self.state.check_invariants();
        self.perform(actions);
    }

    pub(super) fn perform(&mut self, actions: Vec<Action<Simulated>>) {
        let mut drains = Vec::new();
        for action in actions {
            match action {
                Action::StartEstablish { id, .. } => self.say_hello(id),
                Action::AbortEstablish { id } => {
                    self.replies.retain(|_, (replied, _)| *replied != id);
                }
                Action::Deliver { waiter, outcome } => {
                    let connection = |(id, socket)| SimulatedConnection { id, socket };
                    let explain = |error| PoolError::new(Arc::clone(&self.address), error);
                    waiter.send(outcome.map(connection).map_err(explain));
                }
                Action::CloseSocket { id, conn: Socket(number) } => {
                    assert_eq!(id.number(), number, "each connection has its own socket");
                    assert!(self.sockets.remove(&number), "a socket is closed once");
                }
                Action::StartDrain { id, conn: Socket(number) } => {
                    assert!(self.sockets.remove(&number), "a socket is closed once");
                    drains.push(id);
                }
                Action::AbortDrain { id } => drains.retain(|draining| *draining != id),
                Action::Interrupt { id } => {
                    self.interrupted.insert(id);
                }
                Action::ReportLeak { .. } | Action::ReportUnanswered { .. } => {}
                Action::EmitEvent(event) => self.emit(&event),
            }
        }
        // The mock server sends no reply that its client has given up.
        for id in drains {
            let cause = ConnectionError::network(Stage::Operation, "no reply comes");
            self.feed(Input::DrainFailed { id, cause });
        }
    }

    fn say_hello(&mut self, id: ConnId) {
        let Answer { after, result } = self.server.hello();
        self.hellos += 1;
        self.replies.insert((self.now + after, self.hellos), (id, result));
    }

    fn emit(&mut self, event: &Event<ConnectionError>) {
        self.recorder.record_at(event, &self.address, self.time());
        let message = self.log.as_ref().and_then(|log| log.message(event, &self.address));
        self.messages.extend(message);
    }
}

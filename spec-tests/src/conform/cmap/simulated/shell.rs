//! What the world does with what the pool orders, and with what the endpoint answers.

use std::sync::Arc;

use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::pool::{Action, ConnId, Event, Input, Instant, ServiceId};
use cenote_core::sdam::{self, Context, PoolVerdict};

use super::endpoint::Answer;
use super::world::{Outcome, Simulated, Socket, World};
use crate::conform::cmap::format::SERVICES;
use crate::conform::cmap::ledger::Caller;
use crate::event_json;

impl World {
    /// An establishment ends. A failure is shown to SDAM first, which forgets about it if the pool
    /// has been cleared since, and otherwise may clear the pool (SD-20, TF-18, T-03).
    pub(super) fn established(&mut self, id: ConnId, result: Result<(), ConnectionError>) {
        match result {
            Ok(()) => {
                let conn = Socket(id.number());
                self.ledger.opened(id.number());
                if self.load_balanced {
                    // A load balancer takes its services in turn.
                    let service = id.number() % SERVICES as u64;
                    let service = Some(ServiceId([service as u8; 12]));
                    self.feed(Input::Handshaken { id, service });
                }
                self.feed(Input::EstablishSucceeded { id, conn });
            }
            Err(cause) => {
                self.show_to_sdam(id, &cause);
                self.feed(Input::EstablishFailed { id, cause });
            }
        }
    }

    pub(super) fn show_to_sdam(&mut self, id: ConnId, cause: &ConnectionError) {
        let context = Context {
            load_balanced: self.load_balanced,
            current_generation: !self.pool.is_stale(id),
            topology_version: None,
        };
        match sdam::verdict(&context, cause).pool {
            PoolVerdict::Keep => {}
            PoolVerdict::Clear { interrupt } => {
                self.feed(Input::Clear { cause: cause.clone(), interrupt, service: None });
            }
            PoolVerdict::ClearService => {
                let service = self.pool.service_of(id);
                let cause = cause.clone();
                self.feed(Input::Clear { cause, interrupt: false, service });
            }
        }
    }

    pub(super) fn feed(&mut self, input: Input<Simulated>) {
        let mut actions = Vec::new();
        if let Err(misuse) = self.pool.handle(self.now, input, &mut actions) {
            panic!("the simulation keeps to the contract: {misuse}");
        }
        self.pool.check_invariants();
        self.perform(actions);
    }

    pub(super) fn perform(&mut self, actions: Vec<Action<Simulated>>) {
        for action in actions {
            match action {
                Action::StartEstablish { id, deadline, background: _ } => {
                    self.say_hello(id, deadline);
                }
                Action::AbortEstablish { id } => {
                    self.answers.retain(|_, (answered, _)| *answered != id);
                }
                Action::Deliver { waiter, outcome } => {
                    let explain = |error| PoolError::new(Arc::clone(&self.address), error);
                    self.deliver(waiter, outcome.map_err(explain));
                }
                Action::CloseSocket { id, conn: Socket(number) } => {
                    assert_eq!(id.number(), number, "each connection has its own socket");
                    self.ledger.closed(number);
                }
                Action::Interrupt { id } => {
                    self.broken.insert(id);
                }
                Action::ReportLeak { .. } => {}
                Action::EmitEvent(event) => self.tell(&event),
            }
        }
    }

    /// Whoever establishes gives up at the deadline of who waits for it (CS-05).
    fn say_hello(&mut self, id: ConnId, deadline: Option<Instant>) {
        let Answer { after, result } = self.endpoint.hello(self.app_name.as_deref());
        let (at, result) = match deadline {
            Some(deadline) if deadline < self.now + after => {
                let limit = deadline.saturating_since(self.now);
                (deadline, Err(ConnectionError::timeout(Stage::Hello, limit)))
            }
            Some(_) | None => (self.now + after, result),
        };
        self.asked += 1;
        self.answers.insert((at, self.asked), (id, result));
    }

    fn deliver(&mut self, caller: Caller, outcome: Outcome) {
        self.ledger.answered(caller);
        let unclaimed = self.inbox.insert(caller, outcome);
        assert!(unclaimed.is_none(), "a caller asks for one connection at a time");
    }

    fn tell(&mut self, event: &Event<ConnectionError>) {
        self.ledger.told(event, &self.address, self.time());
        let message = self.log.as_ref().and_then(|log| log.message(event, &self.address));
        self.messages.extend(message);
        let json = serde_json::to_value(event_json::official(event, &self.address));
        self.events.push(json.expect("an event is plain data"));
    }
}

//! Performs actions, in the order in which they are pulled.

use std::time::Duration;

use cenote_c::action::{Action, ActionKind, CheckOutError};
use cenote_c::cause::{Cause, cenote_cause_release};
use cenote_c::checked;
use cenote_c::input::{cenote_drain_failed, cenote_establish_failed, cenote_established};
use cenote_c::inspect::ConnectionState;
use cenote_c::status::Status;
use cenote_c::text::TextKind;
use cenote_c::verdict::PoolVerdict;
use cenote_conform::{Answer, Scenario};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::Event;

use super::convert;
use super::pool::{CConnection, CPool};

impl CPool {
    /// Performs actions until there are none.
    pub(super) fn perform(&mut self) {
        loop {
            let action = checked::next_action(self.handle).expect("a pool");
            let Action { kind, connection, payload, waiter, .. } = action;
            match kind {
                it if it == ActionKind::None as u32 => return,
                it if it == ActionKind::StartEstablish as u32 => self.say_hello(&action),
                it if it == ActionKind::AbortEstablish as u32 => {
                    self.replies.retain(|_, (replied, _)| *replied != connection);
                }
                it if it == ActionKind::Deliver as u32 => {
                    let outcome = if action.error == CheckOutError::None as u32 {
                        Ok(CConnection { id: connection, socket: payload })
                    } else {
                        Err(self.error(&action))
                    };
                    let reply = self.waiters.remove(&waiter).expect("each outcome comes once");
                    reply.send(outcome);
                }
                it if it == ActionKind::CloseSocket as u32 => {
                    assert!(self.sockets.remove(&payload), "a socket is closed once");
                }
                it if it == ActionKind::Interrupt as u32 => {
                    self.interrupted.insert(connection);
                }
                it if it == ActionKind::ReportLeak as u32
                    || it == ActionKind::ReportUnanswered as u32 => {}
                it if it == ActionKind::EmitEvent as u32 => {
                    let event = self.event(&action);
                    self.recorder.record_at(&event, &self.address, Duration::from_nanos(self.now));
                    self.log(&event);
                }
                it if it == ActionKind::StartDrain as u32 => {
                    assert!(self.sockets.remove(&payload), "a socket is closed once");
                    let error = ConnectionError::network(Stage::Operation, "no reply comes");
                    self.with_cause(error, |pool, cause| {
                        pool.must(cenote_drain_failed(pool.handle, pool.now, connection, cause));
                    });
                }
                other => panic!("an action with the number {other}"),
            }
        }
    }

    fn say_hello(&mut self, action: &Action) {
        let Answer { after, result } = self.server.hello();
        self.hellos += 1;
        let at = self.now + convert::nanos(after);
        self.replies.insert((at, self.hellos), (action.connection, result));
    }

    /// An establishment ends. A failure is shown to SDAM first.
    pub(super) fn established(&mut self, id: u64, result: Result<(), ConnectionError>) {
        match result {
            Ok(()) => {
                let socket = id as usize;
                assert!(self.sockets.insert(socket), "a connection is established once");
                if self.is_load_balanced() {
                    let service = [(id % Scenario::SERVICES as u64) as u8; 12];
                    self.must(checked::handshaken(self.handle, self.now, id, Some(service)));
                }
                self.must(cenote_established(self.handle, self.now, id, socket));
            }
            Err(error) => self.with_cause(error, |pool, cause| {
                pool.show_to_sdam(id, cause);
                pool.must(cenote_establish_failed(pool.handle, pool.now, id, cause));
            }),
        }
        self.perform();
    }

    pub(super) fn show_to_sdam(&mut self, id: u64, cause: *const Cause) {
        let verdict = checked::verdict(self.handle, id, cause, None).expect("a verdict");
        let (interrupt, service) = match verdict.pool {
            it if it == PoolVerdict::Keep as u32 => return,
            it if it == PoolVerdict::Clear as u32 => (false, None),
            it if it == PoolVerdict::ClearAndInterrupt as u32 => (true, None),
            it if it == PoolVerdict::ClearService as u32 => (false, self.service(id)),
            other => panic!("a verdict with the number {other}"),
        };
        self.must(checked::clear(self.handle, self.now, cause, interrupt, service));
    }

    pub(super) fn service(&self, id: u64) -> Option<[u8; 12]> {
        let info = checked::connection(self.handle, id).ok()?;
        assert!(info.state <= ConnectionState::Draining as u32 && info.connection == id);
        info.has_service.then_some(info.service)
    }

    /// Makes a cause of an error for one call. The pool keeps it as long as it needs it.
    pub(super) fn with_cause(
        &mut self,
        error: ConnectionError,
        call: impl FnOnce(&mut Self, *const Cause),
    ) {
        let cause = convert::cause(&error, self.causes.len());
        self.causes.push(error);
        call(self, cause);
        assert_eq!(cenote_cause_release(cause), Status::Ok);
    }

    /// The library's message has to be the one that the core makes.
    fn log(&mut self, event: &Event<ConnectionError>) {
        let Some(mut message) = self.log.as_ref().and_then(|log| log.message(event, &self.address))
        else {
            return;
        };
        let json = self.text(TextKind::LogJson);
        let data = serde_json::from_str(&json).expect("the library writes JSON");
        assert_eq!(message.data, data);
        message.data = data;
        self.messages.push(message);
    }

    pub(super) fn must(&self, status: Status) {
        assert_eq!(status, Status::Ok, "{}", checked::last_error());
    }
}

//! Events and errors, from their numbers. Each text of the library has to be what the core says of the same values.

use std::sync::Arc;
use std::time::Duration;

use cenote_c::action::{Action, CheckOutError as Number};
use cenote_c::cause::{cenote_cause_release, cenote_cause_retain};
use cenote_c::checked;
use cenote_c::event::{ClosedReason, EventKind};
use cenote_c::status::Status;
use cenote_c::text::TextKind;
use cenote_core::error::{ConnectionError, PoolError, RetryWrites};
use cenote_core::pool::{
    CheckOutError, CloseReason, Event, Instant, NoPayload, PoolOptions, PoolState, ServiceId,
    Snapshot, StandingDelay, WaiterId,
};

use super::pool::CPool;

impl CPool {
    pub(super) fn text(&self, kind: TextKind) -> String {
        let text = checked::action_text(self.handle, kind as u32);
        text.unwrap_or_else(|status| panic!("{kind:?}: {status:?} {}", checked::last_error()))
    }

    /// The error of a delivery or an event.
    pub(super) fn error(&self, action: &Action) -> PoolError {
        let error = match action.error {
            it if it == Number::PoolClosed as u32 => CheckOutError::PoolClosed,
            it if it == Number::PoolCleared as u32 => {
                CheckOutError::PoolCleared { cause: self.cause(action) }
            }
            it if it == Number::WaitQueueTimeout as u32 => {
                CheckOutError::WaitQueueTimeout { snapshot: Arc::new(self.snapshot()) }
            }
            it if it == Number::EstablishFailed as u32 => {
                let cause = self.cause(action).expect("a failure has a cause");
                CheckOutError::EstablishFailed { cause }
            }
            it if it == Number::WaitQueueFull as u32 => {
                let max = self.options.max_wait_queue_size.unwrap_or_default();
                CheckOutError::WaitQueueFull { max }
            }
            it if it == Number::Shed as u32 => {
                let or = |limit: Option<Duration>, default| limit.unwrap_or(default);
                let delay = StandingDelay::new(
                    or(self.options.codel_target, PoolOptions::DEFAULT_CODEL_TARGET),
                    or(self.options.codel_interval, PoolOptions::DEFAULT_CODEL_INTERVAL),
                );
                CheckOutError::Shed { delay }
            }
            it if it == Number::Cancelled as u32 => CheckOutError::Cancelled,
            other => panic!("an error with the number {other}"),
        };
        let error = PoolError::new(Arc::clone(&self.address), error);
        assert_eq!(self.text(TextKind::Name), error.name());
        assert_eq!(self.text(TextKind::Message), error.message().to_string());
        for (kind, retries) in [
            (TextKind::Labels, RetryWrites::Disabled),
            (TextKind::LabelsRetryWrites, RetryWrites::Enabled),
        ] {
            assert_eq!(self.text(kind), error.labels(retries).collect::<Vec<_>>().join(" "));
        }
        assert_eq!(
            (action.is_retryable, action.is_timeout),
            (error.is_retryable(), error.is_timeout())
        );
        error
    }

    /// The cause of the action, found by the number that it was made with.
    fn cause(&self, action: &Action) -> Option<ConnectionError> {
        let found = checked::action_cause(self.handle);
        assert_eq!(found.is_ok(), action.has_cause);
        let cause = found.ok()?;
        assert_eq!(cenote_cause_retain(cause), Status::Ok);
        assert_eq!(cenote_cause_release(cause), Status::Ok);
        let payload = checked::cause_payload(cause).expect("a cause");
        let error = self.causes[payload].clone();
        let shown = checked::cause_text(cause, TextKind::Message as u32);
        assert_eq!(shown, Ok(error.to_string()));
        assert_eq!(cenote_cause_release(cause), Status::Ok);
        Some(error)
    }

    /// The counts that an error's message can name. A timeout leaves them as they are.
    fn snapshot(&self) -> Snapshot {
        let machine =
            PoolState::<NoPayload>::new(Instant::ORIGIN, self.options.clone(), &mut |_| {});
        let mut snapshot = machine.expect("options that a pool works with").snapshot();
        let now = checked::snapshot(self.handle).expect("a pool");
        snapshot.in_use_by_cursors = now.in_use_by_cursors;
        snapshot.in_use_by_transactions = now.in_use_by_transactions;
        snapshot.in_use_by_others = now.in_use_by_others;
        snapshot
    }

    pub(super) fn event(&self, action: &Action) -> Event<ConnectionError> {
        let connection_id = action.connection;
        let duration = Duration::from_nanos(action.duration);
        let is = |kind: EventKind| action.event == kind as u32;
        let event = if is(EventKind::PoolCreated) {
            Event::ConnectionPoolCreated { options: Box::new(self.options.clone()) }
        } else if is(EventKind::PoolReady) {
            Event::ConnectionPoolReady
        } else if is(EventKind::PoolCleared) {
            let service_id = action.has_service.then_some(ServiceId(action.service));
            let interrupt_in_use_connections = action.interrupt;
            Event::ConnectionPoolCleared { service_id, interrupt_in_use_connections }
        } else if is(EventKind::PoolClosed) {
            Event::ConnectionPoolClosed
        } else if is(EventKind::ConnectionCreated) {
            Event::ConnectionCreated { connection_id }
        } else if is(EventKind::ConnectionReady) {
            Event::ConnectionReady { connection_id, duration }
        } else if is(EventKind::ConnectionClosed) {
            let reason = self.close_reason(action.reason);
            Event::ConnectionClosed { connection_id, reason, error: self.cause(action) }
        } else if is(EventKind::CheckOutStarted) {
            Event::ConnectionCheckOutStarted { request: WaiterId(action.owner) }
        } else if is(EventKind::CheckOutFailed) {
            let error = self.error(action).error().clone();
            assert_eq!(self.text(TextKind::Reason), error.reason().as_str());
            assert_eq!(action.reason, error.reason() as u32);
            let (request, duration) = (WaiterId(action.owner), duration.into());
            Event::ConnectionCheckOutFailed { request, error, duration }
        } else if is(EventKind::CheckedOut) {
            {
                let (request, duration) = (WaiterId(action.owner), duration.into());
                Event::ConnectionCheckedOut { connection_id, request, duration }
            }
        } else if is(EventKind::CheckedIn) {
            Event::ConnectionCheckedIn { connection_id }
        } else {
            // Scenarios have no late replies.
            panic!("an event with the number {}", action.event)
        };
        assert_eq!(self.text(TextKind::Event), event.name());
        event
    }

    fn close_reason(&self, number: u32) -> CloseReason {
        let reason = match number {
            it if it == ClosedReason::Error as u32 => CloseReason::Error,
            it if it == ClosedReason::Stale as u32 => CloseReason::Stale,
            it if it == ClosedReason::Idle as u32 => CloseReason::Idle,
            it if it == ClosedReason::PoolClosed as u32 => CloseReason::PoolClosed,
            other => panic!("a reason with the number {other}"),
        };
        assert_eq!(self.text(TextKind::Reason), reason.as_str());
        reason
    }
}

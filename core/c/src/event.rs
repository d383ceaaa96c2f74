//! Events, flat.

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::pool::Event;

use crate::action::{Action, CheckOutError, nanos};
use crate::cause::SharedCause;
use crate::status::{Failure, Status};

/// The events of CMAP, and three of a draft about pending responses. Which fields of the action an event has:
/// `connection` where it is about one, and those that are named here.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The action is none.
    None = 0,
    /// The pool exists.
    PoolCreated = 1,
    /// The pool went from paused to ready.
    PoolReady = 2,
    /// A new generation began: `interrupt`; `service` behind a load balancer.
    PoolCleared = 3,
    /// The pool is closed.
    PoolClosed = 4,
    /// A connection exists; no I/O has happened yet.
    ConnectionCreated = 5,
    /// A connection finished establishment: `duration` since it was created.
    ConnectionReady = 6,
    /// A connection no longer counts: `reason` is a `cenote_closed_reason`.
    ConnectionClosed = 7,
    /// A caller asked for a connection: `owner`.
    CheckOutStarted = 8,
    /// A request ended without a connection: `owner`, `error`, `duration`; `reason` is a `cenote_failed_reason`.
    CheckOutFailed = 9,
    /// A connection is about to be delivered to the request `owner`: `duration` since it asked.
    CheckedOut = 10,
    /// A connection was returned.
    CheckedIn = 11,
    /// A request waits for a late reply: `request_id`.
    PendingResponseStarted = 12,
    /// The late reply was read: `request_id`, `duration`.
    PendingResponseSucceeded = 13,
    /// The request stopped waiting for it: `request_id`, `duration`; `reason` is 0 after a timeout and 1 after an
    /// error.
    PendingResponseFailed = 14,
}

/// Why a connection was closed.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum ClosedReason {
    /// An error; the action has a cause.
    Error = 0,
    /// It is of an older generation.
    Stale = 1,
    /// It was available for too long, outlived its lifetime, or is surplus.
    Idle = 2,
    /// The pool was closed.
    PoolClosed = 3,
}

/// Why a check-out failed, as its event tells it.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum FailedReason {
    /// The pool was closed.
    PoolClosed = 0,
    /// The time allowed for waiting ran out.
    Timeout = 1,
    /// The connection could not be established, the pool was cleared, or the caller cancelled.
    ConnectionError = 2,
}

impl Action {
    /// The fields of an event.
    pub(crate) fn set_event(
        &mut self,
        event: &Event<SharedCause>,
        address: &Arc<ServerAddress>,
    ) -> Result<(), Failure> {
        let (kind, connection) = match event {
            Event::ConnectionPoolCreated { options: _ } => (EventKind::PoolCreated, 0),
            Event::ConnectionPoolReady => (EventKind::PoolReady, 0),
            Event::ConnectionPoolCleared { service_id, interrupt_in_use_connections } => {
                self.interrupt = *interrupt_in_use_connections;
                self.has_service = service_id.is_some();
                self.service = service_id.map_or([0; 12], |service| service.0);
                (EventKind::PoolCleared, 0)
            }
            Event::ConnectionPoolClosed => (EventKind::PoolClosed, 0),
            Event::ConnectionCreated { connection_id } => {
                (EventKind::ConnectionCreated, *connection_id)
            }
            Event::ConnectionReady { connection_id, duration } => {
                self.duration = nanos(*duration);
                (EventKind::ConnectionReady, *connection_id)
            }
            Event::ConnectionClosed { connection_id, reason, error } => {
                self.reason = *reason as u32;
                self.has_cause = error.is_some();
                (EventKind::ConnectionClosed, *connection_id)
            }
            Event::ConnectionCheckOutStarted { request } => {
                self.owner = request.0;
                (EventKind::CheckOutStarted, 0)
            }
            Event::ConnectionCheckOutFailed { request, error, duration } => {
                self.owner = request.0;
                self.duration = nanos(duration.get());
                self.set_error(error, address);
                self.reason = error.reason() as u32;
                (EventKind::CheckOutFailed, 0)
            }
            Event::ConnectionCheckedOut { connection_id, request, duration } => {
                self.owner = request.0;
                self.duration = nanos(duration.get());
                (EventKind::CheckedOut, *connection_id)
            }
            Event::ConnectionCheckedIn { connection_id } => (EventKind::CheckedIn, *connection_id),
            Event::ConnectionPendingResponseStarted { connection_id, request_id } => {
                self.request_id = *request_id;
                (EventKind::PendingResponseStarted, *connection_id)
            }
            Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration } => {
                self.request_id = *request_id;
                self.duration = nanos(duration.get());
                (EventKind::PendingResponseSucceeded, *connection_id)
            }
            Event::ConnectionPendingResponseFailed {
                connection_id,
                request_id,
                duration,
                reason,
            } => {
                self.request_id = *request_id;
                self.duration = nanos(duration.get());
                self.reason = *reason as u32;
                (EventKind::PendingResponseFailed, *connection_id)
            }
            other => return Err(unknown(other.name())),
        };
        self.event = kind as u32;
        self.connection = connection;
        Ok(())
    }
}

impl CheckOutError {
    /// The number of an error of the machine.
    pub(crate) const fn of<C>(error: &cenote_core::pool::CheckOutError<C>) -> Self {
        use cenote_core::pool::CheckOutError;

        match error {
            CheckOutError::PoolClosed => Self::PoolClosed,
            CheckOutError::PoolCleared { .. } => Self::PoolCleared,
            CheckOutError::WaitQueueTimeout { .. } => Self::WaitQueueTimeout,
            CheckOutError::EstablishFailed { .. } => Self::EstablishFailed,
            CheckOutError::Cancelled => Self::Cancelled,
            CheckOutError::WaitQueueFull { .. } => Self::WaitQueueFull,
            CheckOutError::Shed { .. } => Self::Shed,
        }
    }
}

/// The core has something that this version of the library does not know; they are released together.
fn unknown(name: &str) -> Failure {
    Failure::new(Status::Panicked, format!("libcenote does not know {name} of its own core"))
}

#[cfg(test)]
mod tests {
    use cenote_core::pool::{CheckOutFailedReason, CloseReason, PendingResponseFailure};

    use super::*;

    /// The core's own numbers go to C.
    #[test]
    fn reasons_have_the_numbers_of_the_core() {
        let closed = [
            (ClosedReason::Error, CloseReason::Error),
            (ClosedReason::Stale, CloseReason::Stale),
            (ClosedReason::Idle, CloseReason::Idle),
            (ClosedReason::PoolClosed, CloseReason::PoolClosed),
        ];
        assert!(closed.iter().all(|(own, core)| *own as u32 == *core as u32));
        let failed = [
            (FailedReason::PoolClosed, CheckOutFailedReason::PoolClosed),
            (FailedReason::Timeout, CheckOutFailedReason::Timeout),
            (FailedReason::ConnectionError, CheckOutFailedReason::ConnectionError),
        ];
        assert!(failed.iter().all(|(own, core)| *own as u32 == *core as u32));
        let late = [PendingResponseFailure::Timeout, PendingResponseFailure::Error];
        assert_eq!(late.map(|reason| reason as u32), [0, 1]);
    }
}

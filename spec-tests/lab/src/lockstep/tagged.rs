//! Payload types whose values differ, and conversions to others.

use cenote_core::pool::{Action, CheckOutError, Health, Input, NoPayload, PoolTypes, WaiterId};

/// Every payload is a number, so that lost, duplicated and mixed-up payloads are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {}

impl PoolTypes for Tagged {
    type Conn = u64;
    type Waiter = u64;
    type Cause = u64;
}

/// The same input without its payloads.
pub fn strip_input<S: PoolTypes>(input: Input<S>) -> Input<NoPayload> {
    map_input(input, |_| (), |_| (), |_| ())
}

/// The same input with other payloads.
pub(crate) fn map_input<S: PoolTypes, T: PoolTypes>(
    input: Input<S>,
    map_waiter: impl FnOnce(WaiterId) -> T::Waiter,
    map_conn: impl FnOnce(S::Conn) -> T::Conn,
    map_cause: impl FnOnce(S::Cause) -> T::Cause,
) -> Input<T> {
    match input {
        Input::CheckOutRequested { id, waiter: _, deadline, purpose } => {
            Input::CheckOutRequested { id, waiter: map_waiter(id), deadline, purpose }
        }
        Input::CheckOutCancelled { id } => Input::CheckOutCancelled { id },
        Input::CheckedIn { id, conn, health } => {
            let health = match health {
                Health::Healthy => Health::Healthy,
                Health::Errored(cause) => Health::Errored(map_cause(cause)),
                Health::PendingResponse { request_id, cause } => {
                    Health::PendingResponse { request_id, cause: map_cause(cause) }
                }
            };
            Input::CheckedIn { id, conn: map_conn(conn), health }
        }
        Input::Repurposed { id, purpose } => Input::Repurposed { id, purpose },
        Input::Handshaken { id, service, clears_at_hello } => {
            Input::Handshaken { id, service, clears_at_hello }
        }
        Input::EstablishSucceeded { id, conn } => {
            Input::EstablishSucceeded { id, conn: map_conn(conn) }
        }
        Input::EstablishFailed { id, cause, overloaded } => {
            Input::EstablishFailed { id, cause: map_cause(cause), overloaded }
        }
        Input::IdleClosedByPeer { id, cause } => {
            Input::IdleClosedByPeer { id, cause: map_cause(cause) }
        }
        Input::DrainSucceeded { id, conn } => Input::DrainSucceeded { id, conn: map_conn(conn) },
        Input::DrainFailed { id, cause } => Input::DrainFailed { id, cause: map_cause(cause) },
        Input::DrainProgress { id } => Input::DrainProgress { id },
        Input::RetireConnections => Input::RetireConnections,
        Input::ReleaseIdle => Input::ReleaseIdle,
        Input::Ready => Input::Ready,
        Input::Close => Input::Close,
        Input::Timer => Input::Timer,
        Input::ResetAfterFork => Input::ResetAfterFork,
        Input::Clear { cause, interrupt, service } => {
            Input::Clear { cause: map_cause(cause), interrupt, service }
        }
        Input::SetOptions { options } => Input::SetOptions { options },
    }
}

/// The same action without its payloads; `None` for an event, because sinks without payloads take
/// no events.
pub fn strip_action(action: &Action<Tagged>) -> Option<Action<NoPayload>> {
    Some(match action {
        &Action::StartEstablish { id, owner, deadline, generation } => {
            Action::StartEstablish { id, owner, deadline, generation }
        }
        &Action::AbortEstablish { id } => Action::AbortEstablish { id },
        &Action::StartDrain { id, conn: _ } => Action::StartDrain { id, conn: () },
        &Action::AbortDrain { id } => Action::AbortDrain { id },
        Action::Deliver { waiter: _, outcome } => {
            let outcome = match outcome {
                Ok((id, _)) => Ok((*id, ())),
                Err(error) => Err(strip_error(error)),
            };
            Action::Deliver { waiter: (), outcome }
        }
        &Action::CloseSocket { id, conn: _ } => Action::CloseSocket { id, conn: () },
        &Action::Interrupt { id } => Action::Interrupt { id },
        &Action::ReportLeak { id, held } => Action::ReportLeak { id, held },
        &Action::ReportUnanswered { id, pending } => Action::ReportUnanswered { id, pending },
        Action::EmitEvent(_) => return None,
    })
}

fn strip_error(error: &CheckOutError<u64>) -> CheckOutError<()> {
    match error {
        CheckOutError::PoolClosed => CheckOutError::PoolClosed,
        CheckOutError::PoolCleared { cause } => {
            CheckOutError::PoolCleared { cause: cause.map(|_| ()) }
        }
        CheckOutError::WaitQueueTimeout { snapshot } => {
            CheckOutError::WaitQueueTimeout { snapshot: snapshot.clone() }
        }
        CheckOutError::WaitQueueFull { max } => CheckOutError::WaitQueueFull { max: *max },
        CheckOutError::Shed { delay } => CheckOutError::Shed { delay: *delay },
        CheckOutError::EstablishFailed { cause: _ } => CheckOutError::EstablishFailed { cause: () },
        CheckOutError::Cancelled => CheckOutError::Cancelled,
    }
}

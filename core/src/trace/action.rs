//! Actions as plain data, to compare two runs.

use core::fmt;
use core::time::Duration;

use crate::pool::{Action, CheckOutError, ConnId, Instant, PoolTypes};

/// An action without payloads. Events are not among them: whether they are built
/// depends on the subscribers, and they follow from the same decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionRecord {
    /// Which action.
    pub name: ActionName,
    /// The connection that it is about; none for a request that failed.
    pub connection: Option<ConnId>,
    /// Nanoseconds: a deadline since the origin, or for how long a connection was held or pending.
    pub nanos: Option<u64>,
    /// More details: see [`ActionRecord::DETAILS`].
    pub detail: Option<&'static str>,
}

/// The actions of [`Action`], events excepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActionName {
    /// [`Action::StartEstablish`]
    StartEstablish,
    /// [`Action::AbortEstablish`]
    AbortEstablish,
    /// [`Action::Deliver`]
    Deliver,
    /// [`Action::CloseSocket`]
    CloseSocket,
    /// [`Action::Interrupt`]
    Interrupt,
    /// [`Action::ReportLeak`]
    ReportLeak,
    /// [`Action::StartDrain`]
    StartDrain,
    /// [`Action::AbortDrain`]
    AbortDrain,
    /// [`Action::ReportUnanswered`]
    ReportUnanswered,
}

impl ActionName {
    /// Every name.
    pub const ALL: [Self; 9] = [
        Self::StartEstablish,
        Self::AbortEstablish,
        Self::Deliver,
        Self::CloseSocket,
        Self::Interrupt,
        Self::ReportLeak,
        Self::StartDrain,
        Self::AbortDrain,
        Self::ReportUnanswered,
    ];

    /// As traces spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StartEstablish => "establish",
            Self::AbortEstablish => "abort",
            Self::Deliver => "deliver",
            Self::CloseSocket => "closeSocket",
            Self::Interrupt => "interrupt",
            Self::ReportLeak => "heldTooLong",
            Self::StartDrain => "drain",
            Self::AbortDrain => "abortDrain",
            Self::ReportUnanswered => "unanswered",
        }
    }
}

impl ActionRecord {
    /// What [`detail`](Self::detail) can be: no request waits for the connection that is
    /// established, or why a request failed.
    pub const DETAILS: [&'static str; 9] = [
        "background",
        "poolClosed",
        "poolCleared",
        "poolPaused",
        "waitQueueTimeout",
        "establishFailed",
        "cancelled",
        "waitQueueFull",
        "shed",
    ];

    /// The record of an action; `None` for an event.
    pub fn of<S: PoolTypes>(action: &Action<S>) -> Option<Self> {
        let about = |name, id| Self { name, connection: Some(id), nanos: None, detail: None };
        Some(match action {
            Action::StartEstablish { id, owner, deadline, generation: _ } => Self {
                nanos: deadline.map(Instant::as_nanos),
                detail: owner.is_none().then_some("background"),
                ..about(ActionName::StartEstablish, *id)
            },
            Action::AbortEstablish { id } => about(ActionName::AbortEstablish, *id),
            Action::StartDrain { id, conn: _ } => about(ActionName::StartDrain, *id),
            Action::AbortDrain { id } => about(ActionName::AbortDrain, *id),
            Action::Deliver { waiter: _, outcome: Ok((id, _)) } => about(ActionName::Deliver, *id),
            Action::Deliver { waiter: _, outcome: Err(error) } => Self {
                name: ActionName::Deliver,
                connection: None,
                nanos: None,
                detail: Some(failure(error)),
            },
            Action::CloseSocket { id, conn: _ } => about(ActionName::CloseSocket, *id),
            Action::Interrupt { id } => about(ActionName::Interrupt, *id),
            Action::ReportLeak { id, held } => {
                Self { nanos: Some(nanos(*held)), ..about(ActionName::ReportLeak, *id) }
            }
            Action::ReportUnanswered { id, pending } => {
                Self { nanos: Some(nanos(*pending)), ..about(ActionName::ReportUnanswered, *id) }
            }
            Action::EmitEvent(_) => return None,
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

const fn failure<C>(error: &CheckOutError<C>) -> &'static str {
    match error {
        CheckOutError::PoolClosed => "poolClosed",
        CheckOutError::PoolCleared { cause: Some(_) } => "poolCleared",
        CheckOutError::PoolCleared { cause: None } => "poolPaused",
        CheckOutError::WaitQueueTimeout { .. } => "waitQueueTimeout",
        CheckOutError::EstablishFailed { .. } => "establishFailed",
        CheckOutError::Cancelled => "cancelled",
        CheckOutError::WaitQueueFull { .. } => "waitQueueFull",
        CheckOutError::Shed { .. } => "shed",
    }
}

/// As in `deliver c3`, `deliver cancelled` or `establish c4 background`.
impl fmt::Display for ActionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, connection, nanos, detail } = self;
        f.write_str(name.as_str())?;
        if let Some(id) = connection {
            write!(f, " {id}")?;
        }
        if let Some(detail) = detail {
            write!(f, " {detail}")?;
        }
        match nanos {
            Some(nanos) => write!(f, " {nanos} ns"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use super::*;
    use crate::pool::{
        CheckOutError, ConnId, Event, Instant, NoPayload, PoolOptions, PoolState, StandingDelay,
        WaiterId,
    };

    #[test]
    fn a_record_says_what_an_action_says() {
        let id = ConnId::from_parts(3, 2);
        let about =
            |name, nanos, detail| Some(ActionRecord { name, connection: Some(id), nanos, detail });
        let deadline = Some(Instant::from_nanos(7));
        let table: [(Action<NoPayload>, Option<ActionRecord>); 11] = [
            (
                Action::StartEstablish { id, owner: Some(WaiterId(1)), deadline, generation: 0 },
                about(ActionName::StartEstablish, Some(7), None),
            ),
            (
                Action::StartEstablish { id, owner: None, deadline: None, generation: 0 },
                about(ActionName::StartEstablish, None, Some("background")),
            ),
            (Action::AbortEstablish { id }, about(ActionName::AbortEstablish, None, None)),
            (Action::StartDrain { id, conn: () }, about(ActionName::StartDrain, None, None)),
            (Action::AbortDrain { id }, about(ActionName::AbortDrain, None, None)),
            (
                Action::Deliver { waiter: (), outcome: Ok((id, ())) },
                about(ActionName::Deliver, None, None),
            ),
            (Action::CloseSocket { id, conn: () }, about(ActionName::CloseSocket, None, None)),
            (Action::Interrupt { id }, about(ActionName::Interrupt, None, None)),
            (
                Action::ReportLeak { id, held: Duration::from_nanos(9) },
                about(ActionName::ReportLeak, Some(9), None),
            ),
            (
                Action::ReportUnanswered { id, pending: Duration::from_nanos(9) },
                about(ActionName::ReportUnanswered, Some(9), None),
            ),
            (Action::EmitEvent(Event::ConnectionPoolReady), None),
        ];
        for (action, record) in table {
            assert_eq!(ActionRecord::of(&action), record, "{action:?}");
        }
    }

    #[test]
    fn a_record_says_why_a_request_failed() {
        let pool =
            PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {});
        let snapshot = Arc::new(pool.expect("options").snapshot());
        let delay = StandingDelay::new(Duration::from_millis(5), Duration::from_millis(100));
        let errors = [
            CheckOutError::PoolClosed,
            CheckOutError::PoolCleared { cause: Some(()) },
            CheckOutError::PoolCleared { cause: None },
            CheckOutError::WaitQueueTimeout { snapshot },
            CheckOutError::EstablishFailed { cause: () },
            CheckOutError::Cancelled,
            CheckOutError::WaitQueueFull { max: 5 },
            CheckOutError::Shed { delay },
        ];
        let details: Vec<_> = errors
            .into_iter()
            .map(|error| {
                ActionRecord::of::<NoPayload>(&Action::Deliver { waiter: (), outcome: Err(error) })
            })
            .map(|record| record.and_then(|record| record.detail))
            .collect();
        // "background" is about establishment.
        assert_eq!(details, ActionRecord::DETAILS.map(Some)[1..]);
    }
}

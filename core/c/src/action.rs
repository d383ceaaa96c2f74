//! What a pool wants done: actions, pulled one by one.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{self, CheckOutError as CoreError, ConnId, Event, WaiterId};

use crate::cause::{Cause, SharedCause};
use crate::pointer::{Out, sized, sized_struct};
use crate::pool::{DriverTypes, HandleWord, NEVER, Pool, answer};
use crate::status::{Failure, Status};
use crate::text;

/// What the driver has to do. Actions are performed in the order in which they are pulled.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum ActionKind {
    /// Nothing is left to do.
    None = 0,
    /// Connect, say hello, authenticate; then answer with `cenote_established` or `cenote_establish_failed`, exactly
    /// once, unless `CENOTE_ACTION_KIND_ABORT_ESTABLISH` comes first. Has `connection`, `deadline` (of the request: it ends the
    /// request, and not this; `connectTimeoutMS` does, which the driver applies), `background`, or else `owner`, and `generation`.
    StartEstablish = 1,
    /// Stop establishing `connection`, and drop its socket. No answer is owed.
    AbortEstablish = 2,
    /// Wake `waiter`: with `connection`, which is in use now, and its `payload`; or with `error`, if that is not 0.
    Deliver = 3,
    /// Close the socket `payload` of `connection`, without blocking.
    CloseSocket = 4,
    /// Abort the operation on `connection` at once, with an error that can be retried. It still has to be checked in.
    Interrupt = 5,
    /// `connection` has been in use for `duration`, longer than `leak_detection_threshold`.
    ReportLeak = 6,
    /// Notify subscribers of the `event`, in this place of the order; log it (`CENOTE_TEXT_KIND_LOG`).
    EmitEvent = 7,
    /// Read and discard the late reply on `connection`, whose socket is `payload`. Answer with `cenote_drained` or
    /// `cenote_drain_failed`, exactly once, unless `CENOTE_ACTION_KIND_ABORT_DRAIN` comes first; report bytes with
    /// `cenote_drain_progress`.
    StartDrain = 8,
    /// Stop draining `connection`, and drop its socket. No answer is owed.
    AbortDrain = 9,
    /// `connection` has been pending for `duration`, longer than `unanswered_threshold`: perhaps its answer was lost.
    ReportUnanswered = 10,
}

/// Why a request ended without a connection. Never shown to SDAM, which knows the cause already.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum CheckOutError {
    /// It has a connection.
    None = 0,
    /// PoolClosedError.
    PoolClosed = 1,
    /// PoolClearedError. Has a cause, unless the pool has never been ready.
    PoolCleared = 2,
    /// WaitQueueTimeoutError.
    WaitQueueTimeout = 3,
    /// The connection that was started for the request could not be established. Has a cause.
    EstablishFailed = 4,
    /// The caller cancelled the check-out.
    Cancelled = 5,
    /// `max_wait_queue_size` requests waited already. The operation may be tried again after a backoff.
    WaitQueueFull = 6,
    /// It had waited for longer than `codel_target` when the delay had stood for a whole `codel_interval`. The operation may be tried again after a backoff.
    Shed = 7,
}

/// An action. Fields that an action does not have are 0. Times are in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// `sizeof(cenote_action)`; to be set before the call.
    pub size: u32,
    /// A `cenote_action_kind`.
    pub kind: u32,
    /// How many actions are left after this one.
    pub remaining: u32,
    /// A `cenote_event_kind`.
    pub event: u32,
    /// CMAP's id of the connection, from 1.
    pub connection: u64,
    /// The payload of the connection, as it came with `cenote_established`.
    pub payload: HandleWord,
    /// The waiter of the request, as it came with `cenote_check_out`.
    pub waiter: HandleWord,
    /// When the caller gives up; `CENOTE_NEVER` if it does not.
    pub deadline: u64,
    /// How long something took.
    pub duration: u64,
    /// The request that the connection is made for, as it was given to `cenote_check_out`. It may end before the
    /// establishment does. In an event of a check-out, the request.
    pub owner: u64,
    /// The pool's generation. Behind a load balancer the connection takes that of its service when hello is done.
    pub generation: u64,
    /// A `cenote_check_out_error`.
    pub error: u32,
    /// Why, by a number that the event explains.
    pub reason: u32,
    /// The request whose reply is late.
    pub request_id: i32,
    /// The service behind the load balancer, if `has_service`.
    pub service: [u8; 12],
    /// Whether `service` is one.
    pub has_service: bool,
    /// Whether connections in use are interrupted.
    pub interrupt: bool,
    /// Whether the connection is made for `minPoolSize`, without a request.
    pub background: bool,
    /// Whether `cenote_action_cause` has the cause of the error.
    pub has_cause: bool,
    /// Whether an operation that failed with this error may be tried again.
    pub is_retryable: bool,
    /// Whether a limit of this side ran out: what a driver with `timeoutMS` raises as its timeout error.
    pub is_timeout: bool,
    /// 0, for later versions.
    pub reserved: [u8; 26],
}

sized_struct!(Action, "cenote_action", default);

/// What the last action tells besides its numbers.
pub(crate) enum ActionRecord {
    Nothing,
    Failure(CoreError<SharedCause>),
    Event(Event<SharedCause>),
}

impl Action {
    fn about(kind: ActionKind, id: ConnId) -> Self {
        Self { kind: kind as u32, connection: id.number(), ..Self::default() }
    }

    fn with_payload(self, payload: HandleWord) -> Self {
        Self { payload, ..self }
    }

    fn of(
        action: pool::Action<DriverTypes>,
        address: &Arc<ServerAddress>,
    ) -> Result<(Self, ActionRecord), Failure> {
        let action = match action {
            pool::Action::StartEstablish { id, owner, deadline, generation } => Self {
                owner: owner.map_or(0, |WaiterId(owner)| owner),
                deadline: deadline.map_or(NEVER, pool::Instant::as_nanos),
                generation,
                background: owner.is_none(),
                ..Self::about(ActionKind::StartEstablish, id)
            },
            pool::Action::AbortEstablish { id } => Self::about(ActionKind::AbortEstablish, id),
            pool::Action::StartDrain { id, conn } => {
                Self::about(ActionKind::StartDrain, id).with_payload(conn)
            }
            pool::Action::AbortDrain { id } => Self::about(ActionKind::AbortDrain, id),
            pool::Action::Deliver { waiter, outcome: Ok((id, conn)) } => {
                Self { waiter, ..Self::about(ActionKind::Deliver, id).with_payload(conn) }
            }
            pool::Action::Deliver { waiter, outcome: Err(error) } => {
                let mut action =
                    Self { kind: ActionKind::Deliver as u32, waiter, ..Self::default() };
                action.set_error(&error, address);
                return Ok((action, ActionRecord::Failure(error)));
            }
            pool::Action::CloseSocket { id, conn } => {
                Self::about(ActionKind::CloseSocket, id).with_payload(conn)
            }
            pool::Action::Interrupt { id } => Self::about(ActionKind::Interrupt, id),
            pool::Action::ReportLeak { id, held } => {
                Self { duration: nanos(held), ..Self::about(ActionKind::ReportLeak, id) }
            }
            pool::Action::ReportUnanswered { id, pending } => {
                Self { duration: nanos(pending), ..Self::about(ActionKind::ReportUnanswered, id) }
            }
            pool::Action::EmitEvent(event) => {
                let mut action = Self { kind: ActionKind::EmitEvent as u32, ..Self::default() };
                action.set_event(&event, address)?;
                return Ok((action, ActionRecord::Event(event)));
            }
        };
        Ok((action, ActionRecord::Nothing))
    }

    pub(crate) fn set_error(
        &mut self,
        error: &CoreError<SharedCause>,
        address: &Arc<ServerAddress>,
    ) {
        let explained = text::explained(error, address);
        self.error = CheckOutError::of(error) as u32;
        self.has_cause = cause_of(error).is_some();
        self.is_retryable = explained.is_retryable();
        self.is_timeout = explained.is_timeout();
    }
}

/// A time of any length, as C has it.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl ActionRecord {
    pub(crate) fn cause(&self) -> Option<&SharedCause> {
        match self {
            Self::Failure(error) => cause_of(error),
            #[expect(clippy::wildcard_enum_match_arm, reason = "other events have no error")]
            Self::Event(event) => match event {
                Event::ConnectionClosed { error, .. } => error.as_ref(),
                Event::ConnectionCheckOutFailed { error, .. } => cause_of(error),
                _ => None,
            },
            Self::Nothing => None,
        }
    }
}

const fn cause_of(error: &CoreError<SharedCause>) -> Option<&SharedCause> {
    match error {
        CoreError::PoolCleared { cause } => cause.as_ref(),
        CoreError::EstablishFailed { cause } => Some(cause),
        CoreError::PoolClosed
        | CoreError::WaitQueueTimeout { .. }
        | CoreError::WaitQueueFull { .. }
        | CoreError::Shed { .. }
        | CoreError::Cancelled => None,
    }
}

/// Pulls the next action; its kind is `CENOTE_ACTION_KIND_NONE` if there is none. Its texts can be had until the
/// next one is pulled.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_next_action(pool: *mut Pool, action: *mut Action) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::new(action) };
    answer(pool, out, |inner| {
        let Some(next) = inner.outbox.actions.pop_front() else { return Ok(sized()) };
        let (mut action, record) = Action::of(next, &inner.address)?;
        inner.last_action = record;
        action.remaining = u32::try_from(inner.outbox.actions.len()).unwrap_or(u32::MAX);
        Ok(action)
    })
}

/// The cause of the error in the action that was pulled last, as a reference of the caller: to be released.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_action_cause(pool: *mut Pool, cause: *mut *mut Cause) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::plain(cause, "the cause") };
    let none = || Failure::new(Status::Nothing, "the last action has no cause");
    answer(pool, out, |inner| inner.last_action.cause().cloned().ok_or_else(none)?.handle())
}

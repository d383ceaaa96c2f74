//! What the shell brings to the machine.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutError, ConnId, Instant, PoolTypes, WaiterId};

use super::fork_guarded::ForkGuarded;
use super::idle_sockets::IdleLooks;
use crate::connection::Connector;
use crate::connection::interrupt::Interrupt;
use crate::runtime::Runtime;
use crate::spans::Outcome;

/// The machine's payloads on the runtime `R` with connections of `K`.
#[derive(Debug)]
pub struct Types<R, K>(PhantomData<(R, K)>);

impl<R: Runtime, K: Connector<R>> PoolTypes for Types<R, K> {
    type Conn = Box<PooledSocket<R, K>>;
    /// The index of the caller's slot in the driver's table of waiters. The slot is taken only if the
    /// check-out has to wait.
    type Waiter = u32;
    type Cause = ConnectionError;
}

/// An established connection and what belongs to it. It moves as one pointer.
pub struct PooledSocket<R: Runtime, K: Connector<R>> {
    pub(super) id: ConnId,
    pub(super) connection: ForkGuarded<R, K::Connection>,
    pub(super) interrupt: Arc<Interrupt>,
    /// Why it must not be used again, if so.
    pub(super) error: Option<ConnectionError>,
    /// The caller has said so: no late reply makes it usable again.
    pub(super) is_marked: bool,
    pub(super) operation: Operation,
    /// The leak detector knows where it was checked out.
    pub(super) is_tracked: bool,
    /// `None` if something came since a look.
    pub(super) idle: Option<IdleLooks>,
}

/// How far the last operation has come that needs the connection until its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Ended,
    /// A command waits. If it is dropped, its reply may still come.
    Waits,
    /// It runs, or is of the driver's own. If it panics or is dropped, nothing is known of the connection.
    Runs,
}

impl<R: Runtime, K: Connector<R>> PooledSocket<R, K> {
    pub(super) const fn new(
        id: ConnId,
        connection: ForkGuarded<R, K::Connection>,
        interrupt: Arc<Interrupt>,
    ) -> Self {
        Self {
            id,
            connection,
            interrupt,
            error: None,
            is_marked: false,
            operation: Operation::Ended,
            is_tracked: false,
            idle: None,
        }
    }
}

/// What becomes of a check-out: a connection for [`PoolDriver::guard`](super::PoolDriver::guard), or why
/// there is none.
pub type CheckOutResult<R, K> = Result<Box<PooledSocket<R, K>>, FailedCheckOut>;

/// The answer to a request that waited.
pub(super) type Delivery<R, K> = Result<Box<PooledSocket<R, K>>, CheckOutError<ConnectionError>>;

/// A check-out that failed at once: [`PoolDriver::guard`](super::PoolDriver::guard) makes its error.
#[derive(Debug)]
pub struct FailedCheckOut {
    pub(super) error: CheckOutError<ConnectionError>,
    pub(super) request: WaiterId,
}

/// As spans have it.
pub(super) fn outcome<'a>(
    result: Result<ConnId, &'a CheckOutError<ConnectionError>>,
    address: &'a ServerAddress,
) -> Outcome<'a> {
    result.map(ConnId::number).map_err(|error| (error, address))
}

impl<R: Runtime, K: Connector<R>> fmt::Debug for PooledSocket<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledSocket").field("error", &self.error).finish_non_exhaustive()
    }
}

/// When an input is fed, and what is looked at after it.
#[derive(Clone, Copy)]
pub(super) struct InputContext {
    pub(super) now: Instant,
    /// A deadline may be due earlier after the input.
    pub(super) is_timed: bool,
    /// The input is a check-out or a check-in.
    pub(super) is_use: bool,
    pub(super) wants_events: bool,
}

impl InputContext {
    pub(super) const fn of_use(self) -> Self {
        Self { is_use: true, ..self }
    }
}

//! An input that the machine refused, and why.

use core::fmt;

use thiserror::Error;

use super::id::{ConnId, WaiterId};
use super::input::Input;
use super::options::InvalidOptions;
use super::types::PoolTypes;

/// An input that the machine refused. Nothing changed and nothing was emitted.
pub struct Misuse<S: PoolTypes> {
    /// The input, so that no payload is lost with it.
    pub input: Input<S>,
    /// What is wrong with it.
    pub reason: MisuseReason,
}

impl<S: PoolTypes> fmt::Debug for Misuse<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, reason } = self;
        f.debug_struct("Misuse").field("input", &input.name()).field("reason", reason).finish()
    }
}

impl<S: PoolTypes> fmt::Display for Misuse<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused: {}", self.input.name(), self.reason)
    }
}

impl<S: PoolTypes> core::error::Error for Misuse<S> {}

/// What is wrong with a refused input: always a mistake of the shell, never of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MisuseReason {
    /// Waiter ids must increase strictly.
    #[error(
        "waiter ids must increase, but {id} comes after {last}: count them under the pool's lock"
    )]
    WaiterIdNotIncreasing {
        /// The id of the refused request.
        id: WaiterId,
        /// The last one accepted.
        last: WaiterId,
    },
    /// The pool has never made such a connection.
    // ER-09
    #[error("this pool has never made a connection {id} (slot {})", id.slot())]
    ForeignConnection {
        /// The id in the input.
        id: ConnId,
    },
    /// The connection is not in use: it was checked in before, or has not been checked out.
    #[error("connection {id} is not checked out: was it checked in before?")]
    NotInUse {
        /// The id in the input.
        id: ConnId,
    },
    /// The connection is not being established: it was answered before.
    #[error("connection {id} is not being established: was it answered for before?")]
    NotPending {
        /// The id in the input.
        id: ConnId,
    },
    /// The connection is not being drained: it was answered before, or never started.
    #[error("connection {id} is not being drained: was it answered for before?")]
    NotDraining {
        /// The id in the input.
        id: ConnId,
    },
    /// A connection lies in the pool only once it is established.
    #[error("connection {id} is still being established: feed EstablishFailed instead")]
    StillPending {
        /// The id in the input.
        id: ConnId,
    },
    /// Hello is done once.
    #[error("connection {id} has done its hello already")]
    HandshakenTwice {
        /// The id in the input.
        id: ConnId,
    },
    /// The number of clears at hello is one that the pool has not reached.
    #[error(
        "connection {id} is said to have seen {seen} clears at its hello, but there were {counted}: take the number from service_clears"
    )]
    ClearsNotReached {
        /// The id in the input.
        id: ConnId,
        /// The number in the input.
        seen: u64,
        /// How often services were cleared so far.
        counted: u64,
    },
    /// In load-balanced mode a connection belongs to a service from its hello on.
    #[error(
        "connection {id} of a load-balanced pool has no service: feed Handshaken with its serviceId first"
    )]
    ServiceMissing {
        /// The id in the input.
        id: ConnId,
    },
    /// Without a load balancer there are no services.
    #[error("connection {id} was given a service, but the pool is not load-balanced")]
    ServiceUnexpected {
        /// The id in the input.
        id: ConnId,
    },
    /// A clear of a load-balanced pool names no service.
    #[error("a load-balanced pool is cleared by service: name the one that failed")]
    ClearNeedsService,
    /// A clear names a service, but the pool is not load-balanced.
    #[error("only a load-balanced pool is cleared by service: leave the service out")]
    ClearTakesNoService,
    /// A clear by service asks for interrupts.
    #[error("a clear by service has no interrupt option: leave it false")]
    ClearByServiceInterrupts,
    /// The new options cannot be used.
    #[error("the new options are invalid: {0}")]
    InvalidOptions(InvalidOptions),
    /// A pool is load-balanced for life.
    #[error("a pool cannot change into or out of load-balanced mode: make another one")]
    LoadBalancedIsFixed,
}

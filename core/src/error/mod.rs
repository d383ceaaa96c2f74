//! Errors of connections and pools, and what follows from them.
//!
//! A shell that fails to open a connection, or to use one, says *where* ([`Stage`]) and *what*
//! ([`Kind`]). Everything else is derived from the two: the labels that the failed operation
//! carries, whether it may be tried again, and, in [`crate::sdam`], what happens to the pool.
//! `docs/errors.md` prints the whole table.
//!
//! Errors of the pool itself (closed, cleared, wait-queue timeout: [`PoolError`]; connection broken
//! by a clear: [`InterruptedError`]) are other types on purpose: they must never reach SDAM, and
//! what is not a [`ConnectionError`] cannot.

mod advice;
mod command;
mod connection;
mod interrupted;
pub mod label;
mod operation;
mod pool;
#[cfg(feature = "protocol")]
mod reply;
mod retry_writes;
mod stage;
mod tls;
mod wait;

pub use command::{CommandError, ReplyPart};
pub use connection::{BoxError, ConnectionError, Kind};
pub use interrupted::InterruptedError;
pub use operation::OperationError;
pub use pool::PoolError;
pub use retry_writes::RetryWrites;
pub use stage::Stage;
pub use tls::{TlsAlert, TlsFailure};
pub(crate) use wait::rounded;
pub use wait::{Wait, WaitLimit};

pub use crate::one_line::OneLine;

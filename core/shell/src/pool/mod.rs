//! The pool: [`PoolDriver`] around the machine, and [`Pool`], its asynchronous face.
//!
//! ```text
//!  caller ──▶ check_out ──┐                                    ┌──▶ establish   opens a connection in a task
//!  guard  ──▶ drop ───────┤   driver            inner          ├──▶ guard       interrupted, closed
//!  timer  ──▶ due ────────┼─▶ lock ─▶ input ─▶ PoolState       │
//!  monitor ─▶ ready/clear ┘   unlock ◀─ actions ◀─ collector   ├──▶ wake        callers that wait
//!                             └─ then, in order: wake, perform ┴──▶ notify      event subscribers
//! ```
//!
//! The rules of the driver:
//!
//! * Everything that the machine decides is decided under one lock, and everything that follows is done
//!   after the lock is released: no user code, no wake-up and no system call runs under it.
//! * Answers to check-outs are put into their slots under the lock. Sockets are opened, interrupted and
//!   closed in the machine's order, by one thread at a time; events are told in the machine's order, by
//!   one thread at a time, and a slow subscriber delays no socket.
//! * The clock is read only if someone will look at the time.
//! * Every [`StartEstablish`](cenote_core::pool::Action::StartEstablish) is answered exactly once, also
//!   when the connector panics or the runtime drops the task.

mod answer;
mod at_once;
mod build;
mod check_in;
mod check_out;
mod clear_report;
mod clock;
mod close;
mod collector;
mod drain;
mod driver;
mod establish;
mod failing;
mod failure;
mod failure_counts;
mod fork;
mod fork_guarded;
mod guard;
mod handle;
mod idle_sockets;
mod inner;
#[cfg(unix)]
mod inspect;
pub mod leak;
#[cfg(feature = "metrics")]
mod observed;
mod options;
mod release;
mod request;
mod rest;
mod runtime_handle;
mod tasks;
mod timer;
mod trace;
mod try_check_out;
mod types;
mod waiters;
mod warm_up;
pub mod warm_up_plan;

pub use self::check_out::{CheckOut, Until};
pub use self::close::CLOSE_GRACE;
pub use self::driver::PoolDriver;
pub use self::guard::{GuardParts, PooledConnection};
pub use self::handle::Pool;
pub use self::types::{CheckOutResult, FailedCheckOut, PooledSocket, Types};
pub use self::waiters::WaiterKey;

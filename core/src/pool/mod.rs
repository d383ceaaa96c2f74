//! The machine: CMAP as a function of (state, input, now).
//!
//! ```text
//!              inputs: CheckOutRequested, CheckedIn, EstablishSucceeded, Clear, Timer, …
//!                  │
//!      ┌───────────▼───────────┐   validate    is this input legal now? If not, it is returned
//!      │ state                 │   check_out   find or create a connection, or wait
//!      │  status, generation   │   check_in    close it, or make it available
//!      │  connections (slab)   │   establish   created → handshaken → ready, or failed
//!      │  wait_queue (FIFO)    │   drain       read a late reply before the next use
//!      │  pending_responses    │   clear       ready, and the next generation
//!      │  services (load       │   close_pool  the end; fork
//!      │  balancer)            │   maintenance deadlines, pruning; set_options, retire
//!      └───────────┬───────────┘
//!                  │              after every input: serve requests, keep up the minimum
//!                  ▼
//!              actions: StartEstablish, Deliver, CloseSocket, Interrupt, EmitEvent, …
//! ```
//!
//! `transition/` has a file for each kind of input, `state/` what a pool remembers, `checkpoint/`
//! states as plain data; the files beside them are data types. Each transition is a short function
//! that follows a paragraph of the specification; rule ids in comments are those of
//! `spec-tests/requirements.txt`.
//!
//! This module uses nothing of the rest of the crate and nothing of `std`. It has no clock, thread,
//! socket, randomness or hash map, whose order is not deterministic.

mod action;
mod checkpoint;
mod deadline;
mod error;
mod event;
mod id;
mod input;
mod inspect;
mod invariants;
mod misuse;
mod options;
mod queued;
mod sink;
mod snapshot;
mod state;
mod status;
mod time;
mod transition;
mod types;

pub use action::Action;
pub use checkpoint::{
    ConnectionCheckpoint, ConnectionStateCheckpoint, InvalidCheckpoint, PayloadSource,
    PoolCheckpoint, RequestCheckpoint, ServiceCheckpoint,
};
pub use deadline::{Deadline, DeadlineReason};
pub use error::{CheckOutError, CheckOutFailedReason, StandingDelay};
pub use event::{CloseReason, Elapsed, Event, PendingResponseFailure};
pub use id::{ConnId, ServiceId, WaiterId};
pub use input::{Health, Input, Purpose};
pub use misuse::{Misuse, MisuseReason};
#[cfg(feature = "protocol")]
pub(crate) use options::mix;
pub use options::{InvalidOptions, Maintenance, OptionSpec, OptionValue, PoolOptions, ReuseOrder};
pub use queued::Queued;
pub use sink::{ActionSink, Actions, WithoutEvents};
pub use snapshot::{ConnectionInfo, ConnectionState, Snapshot, WaiterInfo, WaitsFor};
pub use state::PoolState;
pub use state::demand::Demand;
pub use state::pacing::Pacing;
pub use state::wait_queue::FailedRequests;
pub use status::Status;
pub use time::Instant;
pub use types::{NoPayload, PoolTypes};

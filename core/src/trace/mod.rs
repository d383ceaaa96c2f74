//! Traces: the inputs of a pool with their times, recorded, and replayed.
//!
//! ```text
//!   shell, under the pool's lock        outside of it             anywhere, any time
//!   ┌──────────┐   Chunk         ┌──────────────┐   BSON   ┌────────┐  the same pool,
//!   │ Recorder ├────────────────▶│ TraceWriter  ├─────────▶│ Replay ├─▶ step by step
//!   └──────────┘ FlightRecording └──────────────┘          └────────┘
//! ```
//!
//! A [`Recorder`] wraps a [`PoolState`](crate::pool::PoolState). It keeps inputs in a compact form:
//! the last ones in a bounded memory (the *flight recorder*), or all of them in chunks (the
//! *journal*). [`TraceWriter`] and [`FlightRecording::write_to`] turn that into a trace, a file of
//! BSON documents that `docs/traces.md` describes. [`Replay`] reads one from any source, feeds the
//! inputs to a pool without sockets, and compares fingerprints and actions.
//!
//! [`topology`] does the same for the topology of a client.
//!
//! A trace holds no payload: of sockets and waiters nothing, of causes their stage, kind, labels
//! and one line of text, of check-outs the place in the program. Texts and places can be hashed or left out.

mod action;
mod at_once;
mod caller_location;
mod cause;
mod cause_numbers;
mod chunk;
mod compact;
#[cfg(feature = "protocol")]
mod decode;
mod document;
mod document_sink;
#[cfg(feature = "protocol")]
mod documents;
mod encode;
#[cfg(feature = "protocol")]
mod error;
#[cfg(feature = "protocol")]
mod fields;
mod flight;
mod input_log;
mod input_log_entries;
mod journal;
#[cfg(feature = "protocol")]
mod reader;
mod record;
mod recorder;
mod recording;
#[cfg(feature = "protocol")]
mod replay;
mod stage;
mod string_table;
#[cfg(feature = "protocol")]
pub mod topology;
mod traced;
mod writer;

pub use action::{ActionName, ActionRecord};
pub use caller_location::CallerLocation;
pub use cause::{Cause, CauseKind, CauseLabels, CauseSummary, Disclosure, TraceCause};
pub use chunk::Chunk;
#[cfg(feature = "protocol")]
pub use error::{ActionDifference, TraceError, TraceProblem};
pub use flight::FlightRecording;
pub use journal::JournalOptions;
#[cfg(feature = "protocol")]
pub use reader::TraceHeader;
pub use recorder::Recorder;
#[cfg(feature = "protocol")]
pub use replay::{Replay, Step};
pub use stage::StageRecord;
pub use traced::Traced;
pub use writer::{TraceInfo, TraceWriter};

/// The [`format`](FORMAT) of a trace, by its first [`FORMAT_BYTES`] bytes or more: that of a pool, or that of a
/// [topology]. `None` if it is neither.
#[cfg(feature = "protocol")]
#[must_use]
pub fn format_of(beginning: &[u8]) -> Option<&'static str> {
    let rest = beginning.get(4..)?.strip_prefix(b"\x02format\0")?.get(4..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    [FORMAT, topology::FORMAT].into_iter().find(|format| rest.get(..end) == Some(format.as_bytes()))
}

/// How many bytes of a trace tell its [format](format_of).
#[cfg(feature = "protocol")]
pub const FORMAT_BYTES: usize = 4 + 1 + 7 + 4 + topology::FORMAT.len() + 1;

/// The `format` in the header of a trace of a pool.
pub const FORMAT: &str = "cenote-trace";
/// The version of the format that is written: that in which a caller's deadline ends its wait for a connection that is
/// established for it. Version 2 brought the stages of establishments, and the steps of the client that inputs follow.
/// Versions 1 and 2 are read as well, and replayed with their rules.
pub const VERSION: u64 = 3;

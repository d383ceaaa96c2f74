//! Traces of a topology: what its servers said, with the times, recorded and replayed.
//!
//! As those of pools, in documents of the same kinds: a [`Recorder`] around a [`Topology`] keeps inputs and what followed
//! from them, [`TraceWriter`] and [`FlightRecording::write_to`] turn them into a file, and [`Replay`] feeds them to a
//! topology again and compares what follows. If the pools of a client and its topology have the same origin, the times
//! in their traces are those of one clock.
//!
//! A trace holds what the topology decides by: of each server its role, set, members, election, versions, tags and
//! round trip, or the error for which it is Unknown; and the requests for a server that had to wait. It holds no reply,
//! and no credential.
//!
//! ```
//! use cenote_core::pool::Instant;
//! use cenote_core::topology::{Input, Topology, TopologyOptions};
//! use cenote_core::trace::topology::{Recorder, Replay, TraceWriter};
//! use cenote_core::trace::{JournalOptions, TraceInfo};
//! use cenote_core::uri::ConnectionString;
//!
//! let uri = ConnectionString::parse("mongodb://a.example.com,b.example.com/?replicaSet=rs0")?;
//! let topology = Topology::new(TopologyOptions::new(&uri), &mut |_| {});
//! let mut topology =
//!     Recorder::new(topology).with_journal(Instant::ORIGIN, JournalOptions::default());
//! topology.handle(Instant::from_nanos(5), Input::Close, &mut |_| {});
//!
//! // Chunks are taken under the lock of the topology, and written without it.
//! let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
//! topology.flush();
//! while let Some(chunk) = topology.take_chunk() {
//!     writer.write(&chunk)?;
//! }
//! let trace = writer.finish()?;
//!
//! let mut replay = Replay::new(trace.as_slice())?;
//! while let Some(step) = replay.step(&mut |_| {})? {
//!     println!("{} {:?}: {}", step.at, step.input, replay.topology().description());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Topology`]: crate::topology::Topology

mod action;
mod chunk;
mod decode;
mod encode;
mod flight;
mod journal;
mod names;
mod reader;
mod recorder;
mod replay;
mod selection;
mod writer;

pub use action::ActionRecord;
pub use chunk::Chunk;
pub use flight::FlightRecording;
pub use reader::TraceHeader;
pub use recorder::Recorder;
pub use replay::{Replay, Step, StepInput};
pub use selection::{SelectionOutcome, SelectionRecord};
pub use writer::TraceWriter;

/// The `format` in the header of a trace of a topology.
pub const FORMAT: &str = "cenote-topology";
/// The version of the format that is written. Version 1, which is read as well, has no requests for a server.
pub const VERSION: u64 = 2;

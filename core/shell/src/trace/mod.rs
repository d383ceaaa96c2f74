//! Recording what happens to a pool or to the topology of a client, and writing it where it can be replayed.
//!
//! ```text
//!   under its lock                            thread `cenote-trace`
//!   ┌──────────────────────────────┐  a chunk is full    ┌───────────────────┐
//!   │ Recorded                     ├────────────────────▶│ TraceWriterThread ├─▶ file or writer
//!   │   Recorder, TraceWriterHandle│  a timeout:         └───────────────────┘─▶ dump in a folder
//!   └──────────────────────────────┘  flight recording          ▲
//!                                                               │ a signal
//! ```
//!
//! No thread writes under the lock. Threads that use the pool write only what they ask for with
//! `dump_trace`, and the dump of their own panic.
//!
//! The machine lies in a [`Recorded`] under its lock; [`Traced`] gives access to it.
//! [`TraceOptions`] is what a builder was told.

mod dump;
mod end;
mod episode;
mod error;
mod journaled;
mod log;
mod many;
mod name;
mod new_file;
mod options;
mod panic;
mod reason;
mod recordable;
mod recorded;
mod recording;
mod signal;
mod sink;
mod traced;
mod traces;
mod writer_handle;
mod writer_thread;

pub use dump::{dump, dump_into, end_recording, record_into, write};
pub use end::{end, end_blocking};
pub use error::RecordingError;
pub use many::{ClientTraceOptions, dump_each};
pub use name::{TOPOLOGY, file_name};
pub use options::TraceOptions;
pub use panic::{PanicGuard, watch};
pub use recordable::{ChunkWriter, Recordable};
pub use recorded::{Recorded, RecordedPool};
pub use recording::Recording;
pub use traced::Traced;
pub use traces::Traces;
#[cfg(feature = "tls")]
pub(crate) use {journaled::DumpedBeside, traced::beside};

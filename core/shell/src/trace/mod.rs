//! Recording what happens to a pool, and writing it where it can be replayed.
//!
//! ```text
//!   under the pool's lock                     thread `cenote-trace`
//!   ┌──────────────────────────────┐  a chunk is full    ┌───────────────────┐
//!   │ RecordedPool                 ├────────────────────▶│ TraceWriterThread ├─▶ file or writer
//!   │   Recorder, TraceWriterHandle│  first timeout:     └───────────────────┘─▶ dump in a folder
//!   └──────────────────────────────┘  flight recording          ▲
//!                                                               │ a signal
//! ```
//!
//! No thread writes under the lock. Threads that use the pool write only what they ask for with
//! `dump_trace`, and the dump of their own panic.
//!
//! The machine lies in a [`RecordedPool`] under the pool's lock; [`TracedPool`] gives access to it.
//! [`TraceOptions`] is what a builder was told.

mod dump;
mod error;
mod log;
mod many;
mod name;
mod options;
mod panic;
mod pool;
mod recorded;
mod recording;
mod signal;
mod traces;
mod writer_handle;
mod writer_thread;

pub use dump::{dump, dump_into, end_recording, record_into, write};
pub use error::RecordingError;
pub use many::{ClientTraceOptions, dump_each};
pub use name::file_name;
pub use options::TraceOptions;
pub use panic::PanicGuard;
pub use pool::{TracedPool, watch};
pub use recorded::RecordedPool;
pub use recording::Recording;
pub use traces::Traces;

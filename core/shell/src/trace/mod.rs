//! Recording what happens to a pool, and writing it where it can be replayed.
//!
//! ```text
//!   under the pool's lock               thread `cenote-trace`
//!   ┌──────────────────┐  a chunk is full   ┌────────┐
//!   │ RecordedPool   TraceWriterHandle ├───────────────────▶│ TraceWriterThread ├─▶ file or writer
//!   └──────────────────┘  somebody waited   └────────┘─▶ file in a folder
//!                         in vain: a copy of      ▲
//!                         what was last           │ a signal
//! ```
//!
//! Nothing is written under the lock, and nobody who uses the pool writes, except who asks for a
//! dump, or panics.
//!
//! A shell keeps its machine in a [`RecordedPool`], under the pool's lock, and says by [`TracedPool`] how
//! to get at it. [`TraceOptions`] is what a builder was told. When the pool is there, the shell calls
//! [`watch`]; after each input, under the lock, [`RecordedPool::wants_writer`].

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

pub use dump::{dump, end_recording, write};
pub use error::RecordingError;
pub use many::{ClientTraceOptions, dump_each};
pub use name::file_name;
pub use options::TraceOptions;
pub use panic::PanicGuard;
pub use pool::{TracedPool, watch};
pub use recorded::RecordedPool;
pub use recording::Recording;
pub use traces::Traces;

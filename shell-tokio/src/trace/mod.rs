//! Recording what happens to a pool, and writing it where it can be replayed.
//!
//! ```text
//!   under the pool's lock                   thread `cenote-trace`
//!   ┌──────────────────┐  a chunk is full   ┌────────┐
//!   │ Recorder   Clerk ├───────────────────▶│ Scribe ├─▶ file or writer
//!   └──────────────────┘  somebody waited   └────────┘─▶ file in a folder
//!                         in vain: a copy of
//!                         what was last
//! ```
//!
//! Nothing is written under the lock, and nobody who uses the pool writes, except who asks for a
//! dump, or panics.

mod clerk;
mod dump;
mod end;
mod error;
mod log;
mod options;
mod panic;
mod recording;
mod scribe;
mod traces;

pub(crate) use clerk::Clerk;
pub use error::RecordingError;
pub(crate) use options::Tracing;
pub(crate) use panic::OnUnwind;
pub use recording::Recording;
pub(crate) use traces::Traces;

//! A pool or a topology, as far as traces are concerned.

use std::path::PathBuf;
#[cfg(feature = "tls")]
use std::sync::{Arc, Weak};

use super::journaled::{DumpedBeside, Journaled};
use super::new_file::NewFile;
use super::reason::Reason;
use super::recordable::{ChunkWriter, Recordable};
use super::recorded::Recorded;
use super::traces::{self, Traces};

/// A machine that is [`Recorded`] under a lock.
pub trait Traced: Send + Sync + 'static {
    /// The machine with its recorder.
    type Recorder: Recordable;

    /// Runs `act` under the lock.
    fn locked<R>(&self, act: impl FnOnce(&mut Recorded<Self::Recorder>) -> R) -> R;

    /// The same, if the lock is free.
    fn try_locked<R>(&self, act: impl FnOnce(&mut Recorded<Self::Recorder>) -> R) -> Option<R>;

    /// The part of its traces that needs no lock.
    fn traces(&self) -> &Traces;
}

/// How a trace is written.
pub(super) type WriterOf<T> = <<T as Traced>::Recorder as Recordable>::Writer;

/// What a flight recorder holds.
pub(super) type FlightOf<T> = <WriterOf<T> as ChunkWriter>::Flight;

/// For the [options](super::TraceOptions) of what it is dumped beside.
#[cfg(feature = "tls")]
pub(crate) fn beside<T: Traced>(traced: &Arc<T>) -> Weak<dyn DumpedBeside> {
    let weak: Weak<T> = Arc::downgrade(traced);
    weak
}

impl<T: Traced> DumpedBeside for T {
    fn dump(&self, reason: Reason) -> Option<PathBuf> {
        let (recording, file) = self.last(reason)?;
        traces::dump::<WriterOf<T>>(&recording, self.traces().info(), &file, reason)
    }
}

impl<T: Traced> Journaled<WriterOf<T>> for T {
    fn next_chunk(
        &self,
        flush: bool,
        written: Option<<WriterOf<T> as ChunkWriter>::Chunk>,
    ) -> Option<<WriterOf<T> as ChunkWriter>::Chunk> {
        self.locked(|recorded| recorded.next_chunk(flush, written))
    }

    fn stop(&self) {
        self.locked(Recorded::drop_journal);
    }

    fn last(&self, reason: Reason) -> Option<(FlightOf<T>, NewFile)> {
        let file = self.traces().file(reason)?;
        Some((self.locked(|recorded| recorded.flight_recording())?, file))
    }
}

//! A pool, as far as traces are concerned.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use cenote_core::pool::PoolTypes;
use cenote_core::trace::{Chunk, FlightRecording, TraceCause};

use super::panic;
use super::recorded::RecordedPool;
use super::traces::{Reason, Traces};

/// A pool whose machine is a [`RecordedPool`] under a lock.
pub trait TracedPool: Send + Sync + 'static {
    /// What the shell brings to the machine.
    type PoolTypes: PoolTypes<Cause: TraceCause>;

    /// Runs `act` under the pool's lock.
    fn locked<R>(&self, act: impl FnOnce(&mut RecordedPool<Self::PoolTypes>) -> R) -> R;

    /// The same, if the lock is free.
    fn try_locked<R>(&self, act: impl FnOnce(&mut RecordedPool<Self::PoolTypes>) -> R)
    -> Option<R>;

    /// The part of its traces that needs no lock.
    fn traces(&self) -> &Traces;
}

/// Starts writing the recording, and watching for reasons to dump. To be called once, when the pool is made.
pub fn watch<P: TracedPool>(pool: &Arc<P>) {
    let weak: Weak<P> = Arc::downgrade(pool);
    pool.locked(|recorded| recorded.show(weak.clone()));
    if pool.traces().dumps_by_itself() {
        panic::watch(weak);
    }
}

/// A recorded pool of any type.
pub(super) trait Journaled: Send + Sync {
    /// The oldest full chunk, if there is one; with `flush`, all that there is counts as full.
    /// Memory of a chunk that was written is used again.
    fn next_chunk(&self, flush: bool, written: Option<Chunk>) -> Option<Chunk>;

    /// Ends the recording: nothing is written any more.
    fn stop(&self);

    /// The flight recording, and the path for a dump of it.
    fn last(&self, reason: Reason) -> Option<(FlightRecording, PathBuf)>;
}

impl<P: TracedPool> Journaled for P {
    fn next_chunk(&self, flush: bool, written: Option<Chunk>) -> Option<Chunk> {
        self.locked(|recorded| recorded.next_chunk(flush, written))
    }

    fn stop(&self) {
        self.locked(RecordedPool::drop_journal);
    }

    fn last(&self, reason: Reason) -> Option<(FlightRecording, PathBuf)> {
        let path = self.traces().path(reason)?;
        Some((self.locked(|recorded| recorded.flight_recording())?, path))
    }
}

//! A pool, as far as traces are concerned.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use cenote_core::pool::PoolTypes;
use cenote_core::trace::{Chunk, FlightRecording, TraceCause};

use super::panic;
use super::recorded::RecordedPool;
use super::traces::{Reason, Traces};

/// A pool with a lock of the shell's own choice, under which the machine lies as a [`RecordedPool`].
pub trait TracedPool: Send + Sync + 'static {
    /// What the shell brings to the machine.
    type PoolTypes: PoolTypes<Cause: TraceCause>;

    /// Does something under the pool's lock, and waits for that if need be.
    fn locked<R>(&self, act: impl FnOnce(&mut RecordedPool<Self::PoolTypes>) -> R) -> R;

    /// The same, if nobody has the lock.
    fn try_locked<R>(&self, act: impl FnOnce(&mut RecordedPool<Self::PoolTypes>) -> R)
    -> Option<R>;

    /// What is known of its traces outside of the lock.
    fn traces(&self) -> &Traces;
}

/// Begins to write what is recorded, and to look out for what is to be dumped. To be called once, as
/// soon as the pool is there.
pub fn watch<P: TracedPool>(pool: &Arc<P>) {
    let weak: Weak<P> = Arc::downgrade(pool);
    pool.locked(|recorded| recorded.show(weak.clone()));
    if pool.traces().dumps_by_itself() {
        panic::watch(weak);
    }
}

/// A pool that is recorded, whichever it is.
pub(super) trait Journaled: Send + Sync {
    /// The oldest full chunk, if there is one; with `flush`, all that there is counts as full.
    /// Memory of a chunk that was written is used again.
    fn next_chunk(&self, flush: bool, written: Option<Chunk>) -> Option<Chunk>;

    /// Nobody writes any further what is recorded.
    fn stop(&self);

    /// What was last, and where to write it.
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

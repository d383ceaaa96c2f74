//! Recorded inputs, on their way out of the pool's lock.

use alloc::boxed::Box;
use core::fmt;

use crate::pool::{PoolCheckpoint, PoolState, PoolTypes};

use super::caller_location::CallerLocation;
use super::input_log::{Context, InputLog};

/// A stretch of recorded inputs in the compact form of memory; [`TraceWriter`](super::TraceWriter)
/// turns it into documents. Plain data without payloads: it may go to another thread.
#[derive(Clone)]
pub struct Chunk {
    pub(super) log: InputLog,
    /// The state in which it begins, if it does not go on where the one before it ended.
    pub(super) start: Option<Box<Start>>,
}

/// Where recording begins, or begins again.
#[derive(Clone, Debug, Default)]
pub(super) struct Start {
    pub(super) checkpoint: PoolCheckpoint,
    /// Inputs before it that were not recorded, or not kept.
    pub(super) lost: u64,
}

impl Chunk {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { log: InputLog::with_capacity(bytes), start: None }
    }

    /// How many inputs are in it.
    pub fn inputs(&self) -> u64 {
        self.log.inputs
    }

    /// Whether it is empty.
    pub(super) fn is_blank(&self) -> bool {
        self.start.is_none() && self.log.written().is_empty()
    }

    /// Begins again, in the state that the pool is in, with the place of the last check-out. The memory of the
    /// checkpoint is used again.
    pub(super) fn restart<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        lost: u64,
        place: Option<CallerLocation>,
    ) {
        let start = self.start.get_or_insert_default();
        pool.checkpoint_into(&mut start.checkpoint);
        start.lost = lost;
        self.log.restart(Context {
            now: start.checkpoint.now.as_nanos(),
            waiter: start.checkpoint.last_waiter.map_or(0, |id| id.0),
            allowed: 0,
            place,
        });
    }

    /// Continues after another.
    pub(super) fn follow(&mut self, before: &Self) {
        self.start = None;
        self.log.restart(before.log.context);
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log, start } = self;
        let bytes = log.written().len();
        write!(f, "Chunk({} inputs in {bytes} bytes, ", log.inputs)?;
        f.write_str(if start.is_some() { "from a state)" } else { "going on)" })
    }
}

//! The machine of a replay, from a checkpoint.

use crate::pool::{InvalidCheckpoint, NoPayload, PoolCheckpoint, PoolState};

use super::shell::{FromTrace, Traced};

pub(super) fn restored(
    checkpoint: &PoolCheckpoint,
) -> Result<PoolState<Traced>, InvalidCheckpoint> {
    PoolState::restore(checkpoint, &mut FromTrace)
}

/// The fingerprint of a state that was taken from a pool.
pub(super) fn fingerprint_of(checkpoint: &PoolCheckpoint) -> Option<u64> {
    let pool = PoolState::<NoPayload>::restore(checkpoint, &mut ()).ok()?;
    Some(pool.fingerprint())
}

//! The machine of a replay, from an image.

use crate::pool::{DamagedImage, NoPayload, PoolCheckpoint, PoolState};

use super::shell::{FromTrace, Traced};

pub(super) fn restored(image: &PoolCheckpoint) -> Result<PoolState<Traced>, DamagedImage> {
    PoolState::restore(image, &mut FromTrace)
}

/// The fingerprint of a state that was taken from a pool.
pub(super) fn fingerprint_of(image: &PoolCheckpoint) -> Option<u64> {
    let pool = PoolState::<NoPayload>::restore(image, &mut ()).ok()?;
    Some(pool.fingerprint())
}

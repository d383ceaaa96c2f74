//! The machine of a replay, from an image.

use crate::pool::{Bare, DamagedImage, PoolState, StateImage};

use super::shell::{FromTrace, Traced};

pub(super) fn restored(image: &StateImage) -> Result<PoolState<Traced>, DamagedImage> {
    PoolState::restore(image, &mut FromTrace)
}

/// The fingerprint of a state that was taken from a pool.
pub(super) fn fingerprint_of(image: &StateImage) -> Option<u64> {
    let pool = PoolState::<Bare>::restore(image, &mut ()).ok()?;
    Some(pool.fingerprint())
}

//! The payload types of a replay.

#[cfg(feature = "protocol")]
use crate::pool::{ConnId, InvalidCheckpoint, PayloadSource, ServiceId};
use crate::pool::{NoPayload, PoolCheckpoint, PoolState, PoolTypes, WaiterId};

use super::cause::Cause;

/// The shell whose inputs a trace holds. Connections have no payload, a waiter is its id, and
/// causes are what was recorded of them.
///
/// The machine never looks into payloads, so what it does with these is what it does on
/// [`NoPayload`] and what it did in the recorded pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traced {}

impl PoolTypes for Traced {
    type Conn = ();
    type Waiter = WaiterId;
    type Cause = Cause;
}

/// The payloads of a state with which a trace begins.
#[cfg(feature = "protocol")]
#[derive(Clone, Copy, Debug)]
pub(super) struct FromTrace;

#[cfg(feature = "protocol")]
impl PayloadSource<Traced> for FromTrace {
    fn conn(&mut self, _: ConnId) {}

    fn waiter(&mut self, id: WaiterId) -> WaiterId {
        id
    }

    fn cause(&mut self, _: Option<ServiceId>) -> Cause {
        Cause::before_the_trace()
    }

    fn timeout(&mut self, _: ConnId) -> Cause {
        Cause::before_the_trace()
    }
}

/// The machine of a replay.
#[cfg(feature = "protocol")]
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

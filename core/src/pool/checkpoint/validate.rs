//! Why a checkpoint is refused, and what is checked before a pool is built from one: the rest is
//! checked by what the pool verifies of itself.

use alloc::vec::Vec;

use thiserror::Error;

use super::PoolCheckpoint;
use crate::pool::id::{ConnId, ServiceId, WaiterId};
use crate::pool::options::{InvalidOptions, Settings};

/// Why no pool can be in the state that a checkpoint tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidCheckpoint {
    /// No pool can work with these options.
    #[error("its options are invalid: {0}")]
    Options(InvalidOptions),
    /// A count that no pool ever reaches.
    #[error("{what} is {got}, which no pool ever reaches")]
    Count {
        /// Which.
        what: &'static str,
        /// As it was given.
        got: u64,
    },
    /// A connection cannot be as it is told.
    #[error("connection {id} (slot {}) {problem}", id.slot())]
    Connection {
        /// Which.
        id: ConnId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The slots are not 0, 1, 2, …, each with a connection or free.
    #[error("slot {slot} is not there or is told of twice, among {slots} slots")]
    Slot {
        /// Which.
        slot: u32,
        /// How many there are, taken or free.
        slots: usize,
    },
    /// A service cannot be as it is told.
    #[error("service {id} {problem}")]
    Service {
        /// Which.
        id: ServiceId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A request cannot be as it is told.
    #[error("request {id} {problem}")]
    Request {
        /// Which.
        id: WaiterId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The parts do not go together.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// Numbers that are counted up must have room to go on for ever.
pub(super) fn check_counts(checkpoint: &PoolCheckpoint) -> Result<(), InvalidCheckpoint> {
    let counts = [
        ("the generation", checkpoint.generation),
        ("the number of connections", checkpoint.last_connection),
        ("the number of clears of services", checkpoint.service_clears),
        ("the number of times that the clock ran backwards", checkpoint.clock_regressions),
    ];
    let too_large = counts.into_iter().find(|&(_, count)| count > COUNT_MAX);
    if let Some((what, got)) = too_large {
        return Err(InvalidCheckpoint::Count { what, got });
    }
    Ok(())
}

/// Slots are taken into use one by one, so each has a connection or is free, and numbers are given
/// out once.
pub(super) fn check_slots(checkpoint: &PoolCheckpoint) -> Result<(), InvalidCheckpoint> {
    let slots = checkpoint.connections.len() + checkpoint.free_slots.len();
    let taken = checkpoint.connections.iter().map(|connection| connection.id.slot());
    let mut seen = alloc::vec![false; slots];
    for slot in taken.chain(checkpoint.free_slots.iter().copied()) {
        match seen.get_mut(slot as usize) {
            Some(seen) if !*seen => *seen = true,
            Some(_) | None => return Err(InvalidCheckpoint::Slot { slot, slots }),
        }
    }
    if slots as u64 > checkpoint.last_connection || slots > Settings::UNLIMITED as usize {
        return Err(InvalidCheckpoint::Contradiction(
            "there are more slots than connections ever made",
        ));
    }
    let mut ids: Vec<_> = checkpoint.connections.iter().map(|connection| connection.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0].number() == pair[1].number()) {
        Some(pair) => {
            Err(InvalidCheckpoint::Connection { id: pair[1], problem: "is told of more than once" })
        }
        None => Ok(()),
    }
}

/// Larger counts could not be counted up for ever, nor be written as a signed number.
pub(super) const COUNT_MAX: u64 = i64::MAX as u64 / 2;

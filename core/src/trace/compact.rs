//! The compact records of an input log: most check-outs and check-ins.

use crate::pool::{ConnId, Health, Input, Instant, PoolTypes, Purpose, WaiterId};

use super::input_log::InputLog;
use super::record::{COMPACT_HAS_DEADLINE, COMPACT_IS_CHECK_IN, Tag};

/// A compact form: a byte of head, five of time (18 minutes), and for a check-in four of a number
/// and two of a slot.
pub(super) const COMPACT_CHECK_OUT_BYTES: usize = 6;
pub(super) const COMPACT_CHECK_IN_BYTES: usize = 12;
pub(super) const COMPACT_TIME_BITS: u32 = 40;
/// As much as is written at once; what is not used is overwritten.
const COMPACT_ROOM: usize = 16;

/// An input that may have a compact form.
#[derive(Clone, Copy)]
pub(super) enum CompactInput {
    /// With [`Purpose::Other`].
    CheckOut { id: WaiterId, deadline: Option<Instant> },
    /// Of a healthy connection.
    CheckIn(ConnId),
}

impl CompactInput {
    #[inline(always)]
    #[expect(clippy::wildcard_enum_match_arm, reason = "`record` names every other")]
    pub(super) const fn of<S: PoolTypes>(input: &Input<S>) -> Option<Self> {
        match *input {
            Input::CheckOutRequested { id, deadline, purpose, waiter: _ } => {
                Self::check_out(id, deadline, purpose)
            }
            Input::CheckedIn { id, health: Health::Healthy, conn: _ } => Some(Self::CheckIn(id)),
            _ => None,
        }
    }

    #[inline(always)]
    pub(super) const fn check_out(
        id: WaiterId,
        deadline: Option<Instant>,
        purpose: Purpose,
    ) -> Option<Self> {
        match purpose {
            Purpose::Other => Some(Self::CheckOut { id, deadline }),
            Purpose::Cursor | Purpose::Transaction => None,
        }
    }
}

/// What a log was before a record.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    now: u64,
    waiter: u64,
    len: usize,
}

impl InputLog {
    /// Records an input, before it is handled, if there is room and its numbers fit; otherwise nothing is changed. It must
    /// be one that will not be [refused](Self::mark_refused). A handful of instructions: this is what a flight recorder
    /// costs.
    #[inline(always)]
    pub(super) fn record_compact(&mut self, now: Instant, input: CompactInput) -> bool {
        let now = now.as_nanos();
        let time = now.wrapping_sub(self.context.now);
        if time >= 1 << COMPACT_TIME_BITS {
            return false;
        }
        let Some(place) = self.bytes.get_mut(self.len..self.len + COMPACT_ROOM) else {
            return false;
        };
        let Ok(place) = <&mut [u8; COMPACT_ROOM]>::try_from(place) else { return false };
        let begin = time << 8 | Tag::Compact as u64;
        let length = match input {
            CompactInput::CheckOut { id, deadline } => {
                let same = |deadline: Instant| {
                    deadline.as_nanos().wrapping_sub(now) == self.context.allowed
                };
                let has_same = deadline.is_none_or(same);
                if id.0 != self.context.waiter.wrapping_add(1) || !has_same {
                    return false;
                }
                self.context.waiter = id.0;
                let flag = if deadline.is_some() { COMPACT_HAS_DEADLINE } else { 0 };
                write(begin | u64::from(flag), place, 0);
                COMPACT_CHECK_OUT_BYTES
            }
            CompactInput::CheckIn(id) => {
                if id.number() > u32::MAX.into() || id.slot() > u16::MAX.into() {
                    return false;
                }
                write(begin | u64::from(COMPACT_IS_CHECK_IN), place, 0);
                write(id.number() | u64::from(id.slot()) << 32, place, COMPACT_CHECK_OUT_BYTES);
                COMPACT_CHECK_IN_BYTES
            }
        };
        self.context.now = now;
        self.inputs += 1;
        self.len += length;
        true
    }

    /// Where the next record goes.
    #[inline(always)]
    pub(super) const fn mark(&self) -> Mark {
        Mark { now: self.context.now, waiter: self.context.waiter, len: self.len }
    }

    /// Takes back the one [compact](Self::record_compact) record that was written since `mark`.
    pub(super) fn take_back(&mut self, mark: Mark) {
        (self.context.now, self.context.waiter, self.len) = (mark.now, mark.waiter, mark.len);
        self.inputs -= 1;
    }
}

/// Eight bytes at once. What is not used of them is overwritten by the next.
#[inline(always)]
fn write(number: u64, place: &mut [u8; COMPACT_ROOM], at: usize) {
    if let Some(bytes) = place.get_mut(at..at + 8) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
}

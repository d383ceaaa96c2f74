//! What a record of an [input log](super::input_log) is made of.

use crate::pool::{ConnId, Purpose, ServiceId};

/// The kind of a record, in the low four bits of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    CheckOutRequested,
    CheckOutCancelled,
    CheckedIn,
    Repurposed,
    Handshaken,
    EstablishSucceeded,
    EstablishFailed,
    IdleClosedByPeer,
    Ready,
    Close,
    Timer,
    ResetAfterFork,
    Clear,
    SetOptions,
    /// Also an action, a place, a stage or a step of the client: the flags say so.
    Fingerprint,
    /// Both compact forms: the flag says which.
    Compact,
}

impl Tag {
    pub(super) const ALL: [Self; 16] = [
        Self::CheckOutRequested,
        Self::CheckOutCancelled,
        Self::CheckedIn,
        Self::Repurposed,
        Self::Handshaken,
        Self::EstablishSucceeded,
        Self::EstablishFailed,
        Self::IdleClosedByPeer,
        Self::Ready,
        Self::Close,
        Self::Timer,
        Self::ResetAfterFork,
        Self::Clear,
        Self::SetOptions,
        Self::Fingerprint,
        Self::Compact,
    ];
}

/// In the high four bits of the first byte. Their meaning depends on the tag, which the names begin
/// with; an input that was refused has the highest.
pub(super) const REFUSED: u8 = 0x80;
/// Two bits of a purpose.
pub(super) const PURPOSE: u8 = 0x30;
pub(super) const CHECK_OUT_HAS_DEADLINE: u8 = 0x40;
pub(super) const CHECK_IN_ERRORED: u8 = 0x10;
/// Together with the flag before: the caller timed out, and the request id is above the slot.
pub(super) const CHECK_IN_PENDING_RESPONSE: u8 = 0x20;
/// With the tags `EstablishSucceeded` and `EstablishFailed`: it is the end of a drain.
pub(super) const ENDS_DRAIN: u8 = 0x10;
/// With the tag `EstablishFailed`: the server may be overloaded.
pub(super) const IS_OVERLOAD: u8 = 0x20;
/// With the tag `EstablishSucceeded`: progress of a drain.
pub(super) const DRAIN_GOES_ON: u8 = 0x20;
/// With the tag `Ready`: connections retire.
pub(super) const RETIRES: u8 = 0x10;
/// With the tag `Ready`: idle connections are released.
pub(super) const RELEASES: u8 = 0x20;
pub(super) const HAS_SERVICE: u8 = 0x10;
pub(super) const CLEAR_INTERRUPTS: u8 = 0x20;
/// With the tag `Handshaken`: the number of clears at hello is there.
pub(super) const HAS_CLEARS: u8 = 0x20;
/// With the tag `Compact`: a check-in, not a check-out.
pub(super) const COMPACT_IS_CHECK_IN: u8 = 0x10;
/// With the tag `Compact`: the check-out has a deadline, as long after it as that of the one
/// before.
pub(super) const COMPACT_HAS_DEADLINE: u8 = 0x20;
/// With the tag `Fingerprint`: an action.
pub(super) const IS_ACTION: u8 = 0x40;
/// With the tag `Fingerprint`: the place of the check-outs that follow.
pub(super) const IS_PLACE: u8 = 0x80;
/// With the tag `Fingerprint`, if it is no action: the stage of an establishment, or of a failure.
pub(super) const IS_STAGE: u8 = 0x10;
/// With the tag `Fingerprint`, if it is no action: which step of the client the next input follows.
pub(super) const IS_FOLLOWS: u8 = 0x20;
pub(super) const ACTION_HAS_CONNECTION: u8 = 0x10;
pub(super) const ACTION_HAS_NANOS: u8 = 0x20;

/// Head, numbers and service.
pub(super) const RECORD_MAX: usize = 3 + 4 * 8 + 12;
/// The content of a record: a tag with its flags, the time, and three numbers.
#[derive(Clone, Copy, Default)]
pub(super) struct Record {
    pub(super) head: u8,
    pub(super) time: u64,
    pub(super) numbers: [u64; 3],
    pub(super) service: Option<ServiceId>,
}

pub(super) fn plain(tag: Tag) -> Record {
    Record { head: tag as u8, ..Record::default() }
}

pub(super) fn number(tag: Tag, number: u64) -> Record {
    Record { head: tag as u8, numbers: [number, 0, 0], ..Record::default() }
}

#[inline(always)]
pub(super) fn about(tag: Tag, id: ConnId) -> Record {
    let numbers = [id.number(), u64::from(id.slot()), 0];
    Record { head: tag as u8, numbers, ..Record::default() }
}

pub(super) fn served(record: Record, service: Option<ServiceId>) -> Record {
    let has_service = if service.is_some() { HAS_SERVICE } else { 0 };
    Record { head: record.head | has_service, service, ..record }
}

/// Bytes of a number without its leading zeros.
#[inline(always)]
pub(super) const fn length(number: u64) -> usize {
    (64 - number.leading_zeros()).div_ceil(8) as usize
}

/// A difference as a number that is small when the difference is, whatever its sign.
#[inline(always)]
pub(super) const fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64 >> 63) as u64)
}

/// Back from it.
pub(super) const fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

/// Two bits of a head.
pub(super) const fn purpose_of(head: u8) -> Purpose {
    match head & PURPOSE {
        0x10 => Purpose::Cursor,
        0x20 => Purpose::Transaction,
        _ => Purpose::Other,
    }
}

//! Inputs in memory, a few bytes each: what recording costs under the pool's lock.
//!
//! Most check-outs and check-ins have a compact form of fixed length, six bytes and twelve, which
//! is written at once. Any other record has the general form: three bytes of head (what it is, and
//! how long four numbers are), the four numbers, low bytes first and without leading zeros, and for
//! some a service. Times and the ids of requests are differences to those before. Nothing here
//! allocates: memory is set aside once, and a record that has no room goes into the next log.

use alloc::vec::Vec;

use crate::pool::{
    ConnId, Health, Input, Instant, PoolOptions, PoolTypes, Purpose, ServiceId, WaiterId,
};

use super::action::ActionRecord;
use super::caller_location::CallerLocation;
use super::cause::{CauseSummary, TraceCause};
use super::stage::StageRecord;
use super::string_table::StringTable;

/// What the differences are to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    pub(super) now: u64,
    pub(super) waiter: u64,
    /// From a request to its deadline.
    pub(super) allowed: u64,
    /// Of the last check-out.
    pub(super) place: Option<CallerLocation>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct InputLog {
    /// As the log began.
    pub(super) start: Context,
    /// As the next record finds it.
    pub(super) context: Context,
    bytes: Vec<u8>,
    len: usize,
    /// Where the last input begins.
    last: usize,
    pub(super) inputs: u64,
    /// Whether actions are written down, too.
    pub(super) has_actions: bool,
    pub(super) texts: StringTable,
    /// In the order of their numbers, which begin with 1.
    pub(super) places: Vec<CallerLocation>,
    pub(super) options: Vec<PoolOptions>,
}

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
const RECORD_MAX: usize = 3 + 4 * 8 + 12;
/// A compact form: a byte of head, five of time (18 minutes), and for a check-in four of a number
/// and two of a slot.
pub(super) const COMPACT_CHECK_OUT_BYTES: usize = 6;
pub(super) const COMPACT_CHECK_IN_BYTES: usize = 12;
pub(super) const COMPACT_TIME_BITS: u32 = 40;
/// As much as is written at once; what is not used is overwritten.
const COMPACT_ROOM: usize = 16;
/// Texts have an eighth of a log.
const TEXTS_SHARE: usize = 8;
/// Places that a log can hold.
const PLACES_MAX: usize = 255;
/// Sets of options that a log can hold.
const OPTIONS_MAX: usize = 16;

/// The content of a record: a tag with its flags, the time, and three numbers.
#[derive(Clone, Copy, Default)]
struct Record {
    head: u8,
    time: u64,
    numbers: [u64; 3],
    service: Option<ServiceId>,
}

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
            Input::CheckOutRequested { id, deadline, purpose: Purpose::Other, waiter: _ } => {
                Some(Self::CheckOut { id, deadline })
            }
            Input::CheckedIn { id, health: Health::Healthy, conn: _ } => Some(Self::CheckIn(id)),
            _ => None,
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
    /// A log of `bytes` bytes, which are allocated now, with 4 KiB more for rare records.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        let bytes = bytes.max(4 * RECORD_MAX);
        Self {
            start: Context::default(),
            context: Context::default(),
            bytes: alloc::vec![0; bytes],
            len: 0,
            last: 0,
            inputs: 0,
            has_actions: false,
            texts: StringTable::with_capacity((bytes / TEXTS_SHARE).max(StringTable::TEXT_MAX)),
            places: Vec::with_capacity(PLACES_MAX),
            options: Vec::with_capacity(OPTIONS_MAX),
        }
    }

    /// Empties the log.
    pub(super) fn restart(&mut self, context: Context) {
        (self.start, self.context) = (context, context);
        (self.len, self.last, self.inputs) = (0, 0, 0);
        self.texts.clear();
        self.places.clear();
        self.places.extend(context.place);
        self.options.clear();
    }

    /// The bytes so far.
    pub(super) fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Whether one more record fits.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.len + RECORD_MAX <= self.bytes.len() && self.options.len() < OPTIONS_MAX
    }

    /// Records an input, before it is handled, if it has a compact form and there is room;
    /// otherwise nothing is changed.
    pub(super) fn record_if_compact<S: PoolTypes>(
        &mut self,
        now: Instant,
        input: &Input<S>,
    ) -> bool {
        let last = self.len;
        let is_compact = CompactInput::of(input).is_some_and(|it| self.record_compact(now, it));
        if is_compact {
            self.last = last;
        }
        is_compact
    }

    /// The same for an input that will not be [refused](Self::mark_refused). A handful of
    /// instructions: this is what a flight recorder costs.
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

    /// Records an input, before it is handled. There must be room.
    #[expect(clippy::wildcard_enum_match_arm, reason = "`encode_general` names every variant")]
    pub(super) fn record<S: PoolTypes>(&mut self, now: Instant, input: &Input<S>)
    where
        S::Cause: TraceCause,
    {
        self.last = self.len;
        self.inputs += 1;
        let now = now.as_nanos();
        let time = zigzag(now.wrapping_sub(self.context.now));
        self.context.now = now;
        match input {
            Input::CheckOutRequested { id, waiter: _, deadline, purpose } => {
                let gap = id.0.wrapping_sub(self.context.waiter).wrapping_sub(1);
                self.context.waiter = id.0;
                let mut head = Tag::CheckOutRequested as u8 | (*purpose as u8) << 4;
                let mut allowed = 0;
                if let Some(deadline) = deadline {
                    head |= CHECK_OUT_HAS_DEADLINE;
                    let after = deadline.as_nanos().wrapping_sub(now);
                    allowed = zigzag(after.wrapping_sub(self.context.allowed));
                    self.context.allowed = after;
                }
                self.put(Record { head, time, numbers: [gap, allowed, 0], service: None });
            }
            Input::CheckedIn { id, conn: _, health: Health::Healthy } => {
                self.put(Record { time, ..about(Tag::CheckedIn, *id) });
            }
            other => self.encode_general(time, other),
        }
    }

    /// The input that was written last was refused.
    pub(super) fn mark_refused(&mut self) {
        if let Some(head) = self.bytes.get_mut(self.last) {
            *head |= REFUSED;
        }
    }

    /// Records a fingerprint. There must be room.
    pub(super) fn record_fingerprint(&mut self, fingerprint: u64) {
        let numbers = [fingerprint, 0, 0];
        self.put(Record { head: Tag::Fingerprint as u8, numbers, ..Record::default() });
    }

    /// Whether a check-out at this place needs no record of the place before it.
    #[inline(always)]
    pub(super) fn is_at(&self, place: Option<CallerLocation>) -> bool {
        match (self.context.place, place) {
            (Some(known), Some(place)) => known.is(place),
            (known, place) => known.is_none() && place.is_none(),
        }
    }

    /// Records the place of the check-outs that follow. There must be room.
    pub(super) fn record_place(&mut self, place: Option<CallerLocation>) {
        self.context.place = place;
        let number = place.map_or(0, |place| self.number_of(place));
        let head = Tag::Fingerprint as u8 | IS_PLACE;
        self.put(Record { head, numbers: [number, 0, 0], ..Record::default() });
    }

    /// Records to which stage an establishment has come, or in which a connection failed. There must be room.
    pub(super) fn record_stage(&mut self, record: StageRecord) {
        let StageRecord { at, connection, stage, failed } = record;
        let time = zigzag(at.as_nanos().wrapping_sub(self.context.now));
        let head = Tag::Fingerprint as u8 | IS_STAGE;
        // The steps of a client count from 1.
        let numbers = [connection, stage as u64, failed.unwrap_or(0)];
        self.put(Record { head, time, numbers, service: None });
    }

    /// Records which step of the client the next input follows. There must be room.
    pub(super) fn record_follows(&mut self, step: u64) {
        let head = Tag::Fingerprint as u8 | IS_FOLLOWS;
        self.put(Record { head, numbers: [step, 0, 0], ..Record::default() });
    }

    /// 0 for a place for which there is no room.
    fn number_of(&mut self, place: CallerLocation) -> u64 {
        if let Some(index) = self.places.iter().position(|known| known.is(place)) {
            return index as u64 + 1;
        }
        if self.places.len() == PLACES_MAX {
            return 0;
        }
        self.places.push(place);
        self.places.len() as u64
    }

    /// Records an action. There must be room.
    pub(super) fn record_action(&mut self, action: &ActionRecord) {
        let &ActionRecord { name, connection, nanos, detail } = action;
        let detail = ActionRecord::DETAILS.iter().position(|&known| Some(known) == detail);
        let time = name as u64 | detail.map_or(0, |index| index as u64 + 1) << 4;
        let mut head = Tag::Fingerprint as u8 | IS_ACTION;
        if connection.is_some() {
            head |= ACTION_HAS_CONNECTION;
        }
        if nanos.is_some() {
            head |= ACTION_HAS_NANOS;
        }
        let (number, slot) = connection.map_or((0, 0), |id| (id.number(), u64::from(id.slot())));
        let numbers = [number, slot, nanos.unwrap_or(0)];
        self.put(Record { head, time, numbers, service: None });
    }

    #[inline(never)]
    fn encode_general<S: PoolTypes>(&mut self, time: u64, input: &Input<S>)
    where
        S::Cause: TraceCause,
    {
        let record = match input {
            Input::CheckOutRequested { id, .. } => number(Tag::CheckOutRequested, id.0),
            Input::CheckOutCancelled { id } => number(Tag::CheckOutCancelled, id.0),
            Input::CheckedIn { id, conn: _, health } => match health {
                Health::Healthy => about(Tag::CheckedIn, *id),
                Health::Errored(cause) => {
                    let record = self.failed(Tag::CheckedIn, *id, cause);
                    Record { head: record.head | CHECK_IN_ERRORED, ..record }
                }
                Health::PendingResponse { request_id, cause } => {
                    let mut record = self.failed(Tag::CheckedIn, *id, cause);
                    record.head |= CHECK_IN_ERRORED | CHECK_IN_PENDING_RESPONSE;
                    record.numbers[1] |= u64::from(*request_id as u32) << 32;
                    record
                }
            },
            Input::Repurposed { id, purpose } => {
                let record = about(Tag::Repurposed, *id);
                Record { head: record.head | (*purpose as u8) << 4, ..record }
            }
            Input::Handshaken { id, service, clears_at_hello } => {
                let mut record = served(about(Tag::Handshaken, *id), *service);
                if let Some(clears) = clears_at_hello {
                    record.head |= HAS_CLEARS;
                    record.numbers[2] = *clears;
                }
                record
            }
            Input::EstablishSucceeded { id, conn: _ } => about(Tag::EstablishSucceeded, *id),
            Input::EstablishFailed { id, cause, overloaded } => {
                let record = self.failed(Tag::EstablishFailed, *id, cause);
                let overload = if *overloaded { IS_OVERLOAD } else { 0 };
                Record { head: record.head | overload, ..record }
            }
            Input::IdleClosedByPeer { id, cause } => self.failed(Tag::IdleClosedByPeer, *id, cause),
            Input::DrainSucceeded { id, conn: _ } => {
                let record = about(Tag::EstablishSucceeded, *id);
                Record { head: record.head | ENDS_DRAIN, ..record }
            }
            Input::DrainFailed { id, cause } => {
                let record = self.failed(Tag::EstablishFailed, *id, cause);
                Record { head: record.head | ENDS_DRAIN, ..record }
            }
            Input::DrainProgress { id } => {
                let record = about(Tag::EstablishSucceeded, *id);
                Record { head: record.head | DRAIN_GOES_ON, ..record }
            }
            Input::RetireConnections => {
                Record { head: Tag::Ready as u8 | RETIRES, ..Record::default() }
            }
            Input::ReleaseIdle => Record { head: Tag::Ready as u8 | RELEASES, ..Record::default() },
            Input::Ready => plain(Tag::Ready),
            Input::Close => plain(Tag::Close),
            Input::Timer => plain(Tag::Timer),
            Input::ResetAfterFork => plain(Tag::ResetAfterFork),
            Input::Clear { cause, interrupt, service } => {
                let numbers = [self.cause(cause), 0, 0];
                let interrupt = if *interrupt { CLEAR_INTERRUPTS } else { 0 };
                let head = Tag::Clear as u8 | interrupt;
                served(Record { head, numbers, ..Record::default() }, *service)
            }
            Input::SetOptions { options } => {
                self.options.push((**options).clone());
                number(Tag::SetOptions, self.options.len() as u64 - 1)
            }
        };
        self.put(Record { time, ..record });
    }

    fn failed(&mut self, tag: Tag, id: ConnId, cause: &impl TraceCause) -> Record {
        let mut record = about(tag, id);
        record.numbers[2] = self.cause(cause);
        record
    }

    /// The number of its text above the code of what it is.
    fn cause(&mut self, cause: &impl TraceCause) -> u64 {
        let text = self.texts.number(|out| cause.write_text(out));
        cause.summary().code() | text << CauseSummary::CODE_BITS
    }

    #[inline(always)]
    fn put(&mut self, record: Record) {
        let Record { head, time, numbers: [a, b, c], service } = record;
        let end = self.len + RECORD_MAX;
        let Some(place) = self.bytes.get_mut(self.len..end) else { return };
        let Ok(place) = <&mut [u8; RECORD_MAX]>::try_from(place) else { return };
        let lengths = [time, a, b, c].map(length);
        place[0] = head;
        place[1] = (lengths[0] | lengths[1] << 4) as u8;
        place[2] = (lengths[2] | lengths[3] << 4) as u8;
        let mut at = 3;
        for (number, length) in [time, a, b, c].into_iter().zip(lengths) {
            // Eight bytes at once, of which the next number overwrites the zeros.
            if let Some(room) = place.get_mut(at..at + 8) {
                room.copy_from_slice(&number.to_le_bytes());
            }
            at += length;
        }
        if let Some(ServiceId(bytes)) = service {
            if let Some(room) = place.get_mut(at..at + bytes.len()) {
                room.copy_from_slice(&bytes);
            }
            at += bytes.len();
        }
        self.len += at;
    }
}

/// Eight bytes at once. What is not used of them is overwritten by the next.
#[inline(always)]
fn write(number: u64, place: &mut [u8; COMPACT_ROOM], at: usize) {
    if let Some(bytes) = place.get_mut(at..at + 8) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
}

fn plain(tag: Tag) -> Record {
    Record { head: tag as u8, ..Record::default() }
}

fn number(tag: Tag, number: u64) -> Record {
    Record { head: tag as u8, numbers: [number, 0, 0], ..Record::default() }
}

#[inline(always)]
fn about(tag: Tag, id: ConnId) -> Record {
    let numbers = [id.number(), u64::from(id.slot()), 0];
    Record { head: tag as u8, numbers, ..Record::default() }
}

fn served(record: Record, service: Option<ServiceId>) -> Record {
    let has_service = if service.is_some() { HAS_SERVICE } else { 0 };
    Record { head: record.head | has_service, service, ..record }
}

/// Bytes of a number without its leading zeros.
#[inline(always)]
const fn length(number: u64) -> usize {
    (64 - number.leading_zeros()).div_ceil(8) as usize
}

/// A difference as a number that is small when the difference is, whatever its sign.
#[inline(always)]
const fn zigzag(difference: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use std::prelude::v1::*;

    use super::*;
    use crate::error::Stage;
    use crate::trace::cause::{Cause, CauseKind, CauseLabels, CauseSummary};
    use crate::trace::input_log_entries::Entry;
    use crate::trace::traced::Traced;

    fn back(log: &InputLog) -> Vec<Input<Traced>> {
        let inputs = log.entries().map(|entry| match entry {
            Entry::Input { input, .. } => input,
            Entry::Fingerprint(_)
            | Entry::Action(_)
            | Entry::Place(_)
            | Entry::Stage(_)
            | Entry::Follows(_) => {
                panic!("there are inputs only")
            }
        });
        inputs.collect()
    }

    /// Numbers of 32 bits and slots of 16 have room in the compact form of a check-in.
    #[test]
    fn ids_too_large_for_the_compact_form_have_the_general_one() {
        let ids = [(u32::MAX.into(), u16::MAX.into()), (1 << 32, 1), (1, 1 << 16)]
            .map(|(number, slot)| ConnId::from_parts(number, slot));
        let inputs =
            ids.map(|id| Input::<Traced>::CheckedIn { id, conn: (), health: Health::Healthy });
        let mut log = InputLog::with_capacity(1000);
        let compact = inputs.each_ref().map(|input| {
            let is_compact = log.record_if_compact(Instant::ORIGIN, input);
            if !is_compact {
                log.record(Instant::ORIGIN, input);
            }
            is_compact
        });
        assert_eq!(compact, [true, false, false]);
        assert_eq!(back(&log), inputs);
    }

    #[test]
    fn the_smallest_tape_has_room_for_four_records() {
        let id = ConnId::from_parts(u64::MAX, u32::MAX);
        let input = Input::<Traced>::Handshaken {
            id,
            service: Some(ServiceId([7; 12])),
            clears_at_hello: Some(u64::MAX),
        };
        let mut log = InputLog::with_capacity(0);
        for _ in 0..4 {
            assert!(log.has_room());
            log.record(Instant::from_nanos(u64::MAX), &input);
        }
        assert_eq!(back(&log), vec![input; 4]);
    }

    #[test]
    fn late_replies_and_what_follows_from_them_come_back() {
        let (id, cause) = (ConnId::from_parts(7, u32::MAX), Cause::default());
        let pending = |request_id| Input::<Traced>::CheckedIn {
            id,
            conn: (),
            health: Health::PendingResponse { request_id, cause: cause.clone() },
        };
        let inputs = [
            pending(0),
            pending(i32::MAX),
            pending(-1),
            pending(i32::MIN),
            Input::CheckedIn { id, conn: (), health: Health::Errored(cause.clone()) },
            Input::DrainProgress { id },
            Input::DrainSucceeded { id, conn: () },
            Input::DrainFailed { id, cause: cause.clone() },
            Input::EstablishSucceeded { id, conn: () },
            Input::EstablishFailed { id, cause: cause.clone(), overloaded: true },
            Input::EstablishFailed { id, cause: cause.clone(), overloaded: false },
            Input::RetireConnections,
            Input::ReleaseIdle,
            Input::Ready,
        ];
        let mut log = InputLog::with_capacity(1000);
        for input in &inputs {
            assert!(!log.record_if_compact(Instant::ORIGIN, input));
            log.record(Instant::ORIGIN, input);
        }
        assert_eq!(back(&log), inputs);
    }

    #[test]
    fn all_of_a_cause_comes_back() {
        let mut log = InputLog::with_capacity(16 << 10);
        let mut inputs = Vec::new();
        for (stage, kind) in Stage::ALL.into_iter().zip(CauseKind::ALL.into_iter().cycle()) {
            let labels = CauseLabels { retryable: true, ..CauseLabels::default() };
            let summary = CauseSummary { stage: Some(stage), kind: Some(kind), labels };
            let cause = Cause { summary, text: Some(stage.to_string().into()) };
            let id = ConnId::from_parts(1, 0);
            inputs.push(Input::<Traced>::EstablishFailed { id, cause, overloaded: true });
        }
        for input in &inputs {
            log.record(Instant::ORIGIN, input);
        }
        assert_eq!(back(&log), inputs);
    }
}

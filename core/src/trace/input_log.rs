//! Inputs in memory, a few bytes each: what recording costs under the pool's lock.
//!
//! Most check-outs and check-ins have a compact form of fixed length, six bytes and twelve, which
//! is written at once. Any other record has the general form: three bytes of head (what it is, and
//! how long four numbers are), the four numbers, low bytes first and without leading zeros, and for
//! some a service. Times and the ids of requests are differences to those before. Nothing here
//! allocates: memory is set aside once, and a record that has no room goes into the next log.

mod general;

use alloc::vec::Vec;

use crate::pool::{Health, Input, Instant, PoolOptions, PoolTypes, ServiceId};

use super::action::ActionRecord;
use super::caller_location::CallerLocation;
use super::cause::TraceCause;
use super::compact::CompactInput;
use super::record::{
    ACTION_HAS_CONNECTION, ACTION_HAS_NANOS, CHECK_OUT_HAS_DEADLINE, IS_ACTION, IS_FOLLOWS,
    IS_PLACE, IS_STAGE, RECORD_MAX, REFUSED, Record, Tag, about, length, zigzag,
};
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
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
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

/// Texts have an eighth of a log.
const TEXTS_SHARE: usize = 8;
/// Places that a log can hold.
const PLACES_MAX: usize = 255;
/// Sets of options that a log can hold.
const OPTIONS_MAX: usize = 16;

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

#[cfg(test)]
mod tests;

//! Reading a log back: outside the pool's lock, when there is time.

use alloc::boxed::Box;

use crate::pool::{ConnId, Health, Input, Instant, ServiceId, WaiterId};

use super::action::{ActionName, ActionRecord};
use super::cause::{Cause, CauseSummary};
use super::compact::{COMPACT_CHECK_IN_BYTES, COMPACT_CHECK_OUT_BYTES, COMPACT_TIME_BITS};
use super::input_log::{Context, InputLog};
use super::record::{
    ACTION_HAS_CONNECTION, ACTION_HAS_NANOS, CHECK_IN_ERRORED, CHECK_IN_PENDING_RESPONSE,
    CHECK_OUT_HAS_DEADLINE, CLEAR_INTERRUPTS, COMPACT_HAS_DEADLINE, COMPACT_IS_CHECK_IN,
    DRAIN_GOES_ON, ENDS_DRAIN, HAS_CLEARS, HAS_SERVICE, IS_ACTION, IS_FOLLOWS, IS_OVERLOAD,
    IS_PLACE, IS_STAGE, REFUSED, RELEASES, RETIRES, Tag, purpose_of, unzigzag,
};
use super::stage::StageRecord;
use super::traced::Traced;
use crate::error::Stage;

/// One record of a log.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    Input {
        now: Instant,
        input: Input<Traced>,
        refused: bool,
    },
    Fingerprint(u64),
    Action(ActionRecord),
    Stage(StageRecord),
    /// The step of the client that the next input follows.
    Follows(u64),
    /// The number of the place of the check-outs that follow; 0 if it is unknown.
    Place(u64),
}

/// Goes through a log from front to back.
pub(super) struct Entries<'a> {
    log: &'a InputLog,
    rest: &'a [u8],
    context: Context,
}

impl InputLog {
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries { log: self, rest: self.written(), context: self.start }
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let [head, ..] = *self.take(1)? else { return None };
        let tag = *Tag::ALL.get(usize::from(head & 0xF))?;
        if tag == Tag::Compact {
            return self.compact(head);
        }
        let [low, high] = *self.take(2)? else { return None };
        let mut numbers = [0; 4];
        for (number, length) in numbers.iter_mut().zip([low & 0xF, low >> 4, high & 0xF, high >> 4])
        {
            let mut bytes = [0; 8];
            bytes.get_mut(..usize::from(length))?.copy_from_slice(self.take(length.into())?);
            *number = u64::from_le_bytes(bytes);
        }
        let [time, a, b, c] = numbers;
        // Above the slot there can be the id of a request.
        let id = ConnId::from_parts(a, b as u32);
        if tag == Tag::Fingerprint {
            return match head {
                head if head & IS_ACTION != 0 => action(head, time, id, c),
                head if head & IS_PLACE != 0 => Some(Entry::Place(a)),
                head if head & IS_STAGE != 0 => self.stage(time, a, b, c),
                head if head & IS_FOLLOWS != 0 => Some(Entry::Follows(a)),
                _ => Some(Entry::Fingerprint(a)),
            };
        }
        let now = self.context.now.wrapping_add(unzigzag(time));
        self.context.now = now;
        let input = self.input(tag, head, id, numbers)?;
        let refused = head & REFUSED != 0;
        Some(Entry::Input { now: Instant::from_nanos(now), input, refused })
    }
}

impl<'a> Entries<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn stage(&self, time: u64, connection: u64, stage: u64, failed: u64) -> Option<Entry> {
        let at = Instant::from_nanos(self.context.now.wrapping_add(unzigzag(time)));
        let stage = *Stage::ALL.get(usize::try_from(stage).ok()?)?;
        let failed = (failed != 0).then_some(failed);
        Some(Entry::Stage(StageRecord { at, connection, stage, failed }))
    }

    fn compact(&mut self, head: u8) -> Option<Entry> {
        let is_check_in = head & COMPACT_IS_CHECK_IN != 0;
        let length = if is_check_in { COMPACT_CHECK_IN_BYTES } else { COMPACT_CHECK_OUT_BYTES };
        let mut bytes = [0; 16];
        bytes.get_mut(1..length)?.copy_from_slice(self.take(length - 1)?);
        let record = u128::from_le_bytes(bytes) >> 8;
        let time = record & ((1 << COMPACT_TIME_BITS) - 1);
        self.context.now = self.context.now.wrapping_add(time as u64);
        let input = if is_check_in {
            let id = record >> COMPACT_TIME_BITS;
            let id = ConnId::from_parts((id & 0xFFFF_FFFF) as u64, (id >> 32) as u32);
            Input::CheckedIn { id, conn: (), health: Health::Healthy }
        } else {
            let deadline =
                if head & COMPACT_HAS_DEADLINE != 0 { CHECK_OUT_HAS_DEADLINE } else { 0 };
            self.check_out(deadline, 0, 0)
        };
        let now = Instant::from_nanos(self.context.now);
        Some(Entry::Input { now, input, refused: head & REFUSED != 0 })
    }

    fn input(
        &mut self,
        tag: Tag,
        head: u8,
        id: ConnId,
        [_, a, b, c]: [u64; 4],
    ) -> Option<Input<Traced>> {
        Some(match tag {
            Tag::CheckOutRequested => self.check_out(head, a, b),
            Tag::CheckOutCancelled => Input::CheckOutCancelled { id: WaiterId(a) },
            Tag::CheckedIn => {
                let health = if head & CHECK_IN_PENDING_RESPONSE != 0 {
                    let request_id = (b >> 32) as u32 as i32;
                    Health::PendingResponse { request_id, cause: self.cause(c) }
                } else if head & CHECK_IN_ERRORED != 0 {
                    Health::Errored(self.cause(c))
                } else {
                    Health::Healthy
                };
                Input::CheckedIn { id, conn: (), health }
            }
            Tag::Repurposed => Input::Repurposed { id, purpose: purpose_of(head) },
            Tag::Handshaken => Input::Handshaken {
                id,
                service: self.service(head)?,
                clears_at_hello: (head & HAS_CLEARS != 0).then_some(c),
            },
            Tag::EstablishSucceeded if head & ENDS_DRAIN != 0 => {
                Input::DrainSucceeded { id, conn: () }
            }
            Tag::EstablishSucceeded if head & DRAIN_GOES_ON != 0 => Input::DrainProgress { id },
            Tag::EstablishSucceeded => Input::EstablishSucceeded { id, conn: () },
            Tag::EstablishFailed if head & ENDS_DRAIN != 0 => {
                Input::DrainFailed { id, cause: self.cause(c) }
            }
            Tag::EstablishFailed => {
                let overloaded = head & IS_OVERLOAD != 0;
                Input::EstablishFailed { id, cause: self.cause(c), overloaded }
            }
            Tag::IdleClosedByPeer => Input::IdleClosedByPeer { id, cause: self.cause(c) },
            Tag::Ready if head & RETIRES != 0 => Input::RetireConnections,
            Tag::Ready if head & RELEASES != 0 => Input::ReleaseIdle,
            Tag::Ready => Input::Ready,
            Tag::Close => Input::Close,
            Tag::Timer => Input::Timer,
            Tag::ResetAfterFork => Input::ResetAfterFork,
            Tag::Clear => Input::Clear {
                cause: self.cause(a),
                interrupt: head & CLEAR_INTERRUPTS != 0,
                service: self.service(head)?,
            },
            Tag::SetOptions => {
                let options = self.log.options.get(usize::try_from(a).ok()?)?;
                Input::SetOptions { options: Box::new(options.clone()) }
            }
            Tag::Fingerprint | Tag::Compact => return None,
        })
    }

    fn check_out(&mut self, head: u8, gap: u64, allowed: u64) -> Input<Traced> {
        let id = self.context.waiter.wrapping_add(1).wrapping_add(gap);
        self.context.waiter = id;
        let deadline = (head & CHECK_OUT_HAS_DEADLINE != 0).then(|| {
            self.context.allowed = self.context.allowed.wrapping_add(unzigzag(allowed));
            Instant::from_nanos(self.context.now.wrapping_add(self.context.allowed))
        });
        let (id, purpose) = (WaiterId(id), purpose_of(head));
        Input::CheckOutRequested { id, waiter: id, deadline, purpose }
    }

    fn cause(&self, number: u64) -> Cause {
        let summary = CauseSummary::from_code(number & ((1 << CauseSummary::CODE_BITS) - 1));
        let text = self.log.texts.get(number >> CauseSummary::CODE_BITS);
        Cause { summary, text: text.map(Into::into) }
    }

    /// Only there when the head says so; cut short only on a log that is damaged.
    #[expect(clippy::option_option, reason = "whether there is one is part of the record")]
    fn service(&mut self, head: u8) -> Option<Option<ServiceId>> {
        if head & HAS_SERVICE == 0 {
            return Some(None);
        }
        Some(Some(ServiceId(self.take(12)?.try_into().ok()?)))
    }
}

fn action(head: u8, code: u64, id: ConnId, nanos: u64) -> Option<Entry> {
    let name = *ActionName::ALL.get((code & 0xF) as usize)?;
    let detail = ((code >> 4) as usize).checked_sub(1);
    Some(Entry::Action(ActionRecord {
        name,
        connection: (head & ACTION_HAS_CONNECTION != 0).then_some(id),
        nanos: (head & ACTION_HAS_NANOS != 0).then_some(nanos),
        detail: detail.and_then(|index| ActionRecord::DETAILS.get(index).copied()),
    }))
}

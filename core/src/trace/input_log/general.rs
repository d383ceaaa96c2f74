//! Inputs in the general form.

use crate::pool::{ConnId, Health, Input, PoolTypes};
use crate::trace::cause::{CauseSummary, TraceCause};
use crate::trace::record::{
    CHECK_IN_ERRORED, CHECK_IN_PENDING_RESPONSE, CLEAR_INTERRUPTS, DRAIN_GOES_ON, ENDS_DRAIN,
    HAS_CLEARS, IS_OVERLOAD, RELEASES, RETIRES, Record, Tag, about, number, plain, served,
};

use super::InputLog;

impl InputLog {
    #[inline(never)]
    pub(super) fn encode_general<S: PoolTypes>(&mut self, time: u64, input: &Input<S>)
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
}

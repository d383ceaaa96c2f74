//! The memory of a recorder.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::pool::{
    Action, ActionSink, CheckOutError, FailedRequests, Input, Instant, PoolState, PoolTypes,
};

use super::action::ActionRecord;
use super::caller_location::CallerLocation;
use super::cause::TraceCause;
use super::flight::FlightRecorder;
use super::journal::Journal;
use super::stage::StageRecord;

/// What is recorded. Boxed, so that a pool that is not recorded is as small as ever.
pub(super) enum Recording {
    Nothing,
    /// The last inputs.
    Flight(Box<FlightRecorder>),
    /// All inputs, and perhaps the last ones as well.
    Journal(Box<JournalAndFlight>),
}

pub(super) struct JournalAndFlight {
    pub(super) journal: Journal,
    flight: Option<Box<FlightRecorder>>,
    /// The actions of the present input, if they are recorded.
    actions: Vec<ActionRecord>,
}

impl Recording {
    pub(super) fn set_flight(&mut self, flight: FlightRecorder) {
        let flight = Box::new(flight);
        match self {
            Self::Nothing | Self::Flight(_) => *self = Self::Flight(flight),
            Self::Journal(both) => both.flight = Some(flight),
        }
    }

    pub(super) fn set_journal(&mut self, journal: Journal) {
        let flight = self.take_flight();
        *self = Self::Journal(Box::new(JournalAndFlight { journal, flight, actions: Vec::new() }));
    }

    /// A flight recorder goes on.
    pub(super) fn end_journal(&mut self) {
        *self = self.take_flight().map_or(Self::Nothing, Self::Flight);
    }

    pub(super) fn flight(&self) -> Option<&FlightRecorder> {
        match self {
            Self::Nothing => None,
            Self::Flight(flight) => Some(flight),
            Self::Journal(both) => both.flight.as_deref(),
        }
    }

    pub(super) fn journal_mut(&mut self) -> Option<&mut Journal> {
        match self {
            Self::Nothing | Self::Flight(_) => None,
            Self::Journal(both) => Some(&mut both.journal),
        }
    }

    /// Records the place of the check-outs that follow, if it is another one.
    pub(super) fn set_place<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        place: Option<CallerLocation>,
    ) {
        let (flight, journal) = self.parts();
        if let Some(flight) = flight {
            flight.set_place(pool, place);
        }
        if let Some(journal) = journal {
            journal.set_place(pool, place);
        }
    }

    /// Records to which stage an establishment has come, or in which a connection failed.
    pub(super) fn enter_stage<S: PoolTypes>(&mut self, pool: &PoolState<S>, record: StageRecord) {
        let (flight, journal) = self.parts();
        if let Some(flight) = flight {
            flight.enter_stage(pool, record);
        }
        if let Some(journal) = journal {
            journal.enter_stage(pool, record);
        }
    }

    /// Records which step of the client the next input follows.
    pub(super) fn follow<S: PoolTypes>(&mut self, pool: &PoolState<S>, step: u64) {
        let (flight, journal) = self.parts();
        if let Some(flight) = flight {
            flight.follow(pool, step);
        }
        if let Some(journal) = journal {
            journal.follow(pool, step);
        }
    }

    /// Records an input that is permitted, and has the pool handle it. Apart, so that what happens
    /// all the time stays small.
    #[inline(never)]
    pub(super) fn proceed<S: PoolTypes>(
        &mut self,
        pool: &mut PoolState<S>,
        now: Instant,
        input: Input<S>,
        out: &mut impl ActionSink<S>,
    ) where
        S::Cause: TraceCause,
    {
        match self {
            Self::Nothing => pool.proceed(now, input, out),
            Self::Flight(flight) => {
                flight.record(pool, now, &input);
                pool.proceed(now, input, out);
            }
            Self::Journal(both) => {
                let JournalAndFlight { journal, flight, actions } = &mut **both;
                if let Some(flight) = flight {
                    flight.record(pool, now, &input);
                }
                journal.record(pool, now, &input);
                actions.clear();
                let wanted = journal.wants_actions();
                pool.proceed(now, input, &mut RecordingSink { out, actions, wanted });
                journal.handled(pool, false, actions);
            }
        }
    }

    /// Records an input that the pool refuses.
    pub(super) fn refuse<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        now: Instant,
        input: &Input<S>,
    ) where
        S::Cause: TraceCause,
    {
        let (flight, journal) = self.parts();
        if let Some(flight) = flight {
            flight.record(pool, now, input);
            flight.refused();
        }
        if let Some(journal) = journal {
            journal.record(pool, now, input);
            journal.handled(pool, true, &[]);
        }
    }

    fn parts(&mut self) -> (Option<&mut FlightRecorder>, Option<&mut Journal>) {
        match self {
            Self::Nothing => (None, None),
            Self::Flight(flight) => (Some(flight), None),
            Self::Journal(both) => {
                let JournalAndFlight { journal, flight, .. } = &mut **both;
                (flight.as_deref_mut(), Some(journal))
            }
        }
    }

    fn take_flight(&mut self) -> Option<Box<FlightRecorder>> {
        match core::mem::replace(self, Self::Nothing) {
            Self::Nothing => None,
            Self::Flight(flight) => Some(flight),
            Self::Journal(both) => both.flight,
        }
    }
}

/// Passes everything on and takes note of it, if that is wanted.
struct RecordingSink<'a, K> {
    out: &'a mut K,
    actions: &'a mut Vec<ActionRecord>,
    wanted: bool,
}

impl<S: PoolTypes, K: ActionSink<S>> ActionSink<S> for RecordingSink<'_, K> {
    fn act(&mut self, action: Action<S>) {
        if self.wanted {
            self.actions.extend(ActionRecord::of(&action));
        }
        self.out.act(action);
    }

    fn wants_events(&self) -> bool {
        self.out.wants_events()
    }

    fn fail_all(&mut self, requests: FailedRequests<S::Waiter>, error: &CheckOutError<S::Cause>) {
        if !self.wanted {
            return self.out.fail_all(requests, error);
        }
        for waiter in requests {
            self.act(Action::Deliver { waiter, outcome: Err(error.clone()) });
        }
    }
}

//! The pool of a run.

use std::io;

use cenote_core::pool::{Action, Input, Instant, PoolState, WithoutEvents};
use cenote_core::trace::Traced;

use crate::record::RecordedRun;

/// The pool, recorded or not.
pub(crate) trait Machine {
    fn handle(&mut self, now: Instant, input: Input<Traced>, out: &mut Vec<Action<Traced>>);
    fn pool(&self) -> &PoolState<Traced>;
}

impl Machine for PoolState<Traced> {
    fn handle(&mut self, now: Instant, input: Input<Traced>, out: &mut Vec<Action<Traced>>) {
        let handled = self.handle(now, input, &mut WithoutEvents(out));
        handled.unwrap_or_else(|misuse| panic!("the inputs of a world are legal: {misuse}"));
    }

    fn pool(&self) -> &PoolState<Traced> {
        self
    }
}

impl<W: io::Write> Machine for RecordedRun<Traced, W> {
    fn handle(&mut self, now: Instant, input: Input<Traced>, out: &mut Vec<Action<Traced>>) {
        let handled = self.feed_into(now, input, &mut WithoutEvents(out));
        handled.unwrap_or_else(|error| panic!("memory takes what is recorded: {error}"));
    }

    fn pool(&self) -> &PoolState<Traced> {
        self.pool()
    }
}

//! Reads a trace step by step: each step with its actions, and the state before and after.

use std::io::Read;
use std::ops::ControlFlow;

use cenote_core::pool::{Action, PoolState, Snapshot};
use cenote_core::trace::{Replay, StageRecord, Step, TraceError, TraceHeader, Traced};

use super::holders::Holders;

/// A step and its context.
#[derive(Debug)]
pub struct View<'a> {
    /// The step.
    pub step: &'a Step,
    /// The actions.
    pub actions: &'a [Action<Traced>],
    /// The counts before the step.
    pub before: Snapshot,
    /// The connections and requests before the step.
    pub holders: &'a Holders,
    /// The pool after the step.
    pub pool: &'a PoolState<Traced>,
}

/// A trace that is replayed step by step.
#[derive(Debug)]
pub struct StepReader<R> {
    replay: Replay<R>,
    holders: Holders,
    actions: Vec<Action<Traced>>,
    start: Vec<Action<Traced>>,
}

impl<R: Read> StepReader<R> {
    /// Reads the beginning of a trace.
    ///
    /// # Errors
    ///
    /// If this is not a trace, or its beginning is invalid.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut start = Vec::new();
        let replay = Replay::with_sink(source, &mut start)?;
        let holders = Holders::of(replay.pool());
        Ok(Self { replay, holders, actions: Vec::new(), start })
    }

    /// The trace's header.
    pub fn header(&self) -> &TraceHeader {
        self.replay.header()
    }

    /// The actions of creating the pool, if the trace begins with a new one.
    pub fn start(&self) -> &[Action<Traced>] {
        &self.start
    }

    /// The pool in its present state.
    pub fn pool(&self) -> &PoolState<Traced> {
        self.replay.pool()
    }

    /// The connections and requests in their present state.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }

    /// The number of steps so far.
    pub fn steps(&self) -> u64 {
        self.replay.steps()
    }

    /// The stages to which establishments have come since the last step.
    pub fn later_stages(&self) -> &[StageRecord] {
        self.replay.later_stages()
    }

    /// Replays the next step and passes it to `show`; `Ok(None)` at the end.
    ///
    /// # Errors
    ///
    /// If the trace is damaged, or the replay differs from it.
    pub fn step<T>(&mut self, show: impl FnOnce(&View<'_>) -> T) -> Result<Option<T>, TraceError> {
        self.actions.clear();
        let before = self.replay.pool().snapshot();
        let Some(step) = self.replay.step(&mut self.actions)? else { return Ok(None) };
        self.holders.enter(&step.stages);
        let (actions, pool) = (self.actions.as_slice(), self.replay.pool());
        let view = View { step: &step, actions, before, holders: &self.holders, pool };
        let shown = show(&view);
        self.holders.follow(&step, before.waiting, actions, pool);
        Ok(Some(shown))
    }

    /// Passes every step to `show` until that breaks; returns whether it did.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn each(
        &mut self,
        mut show: impl FnMut(&View<'_>) -> ControlFlow<()>,
    ) -> Result<bool, TraceError> {
        while let Some(flow) = self.step(&mut show)? {
            if flow.is_break() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

//! A replay that is watched: each step with what it brought about, before and after.

use std::io::Read;
use std::ops::ControlFlow;

use cenote_core::pool::{Action, PoolState, Snapshot};
use cenote_core::trace::{Replay, Step, TraceError, TraceHeader, Traced};

use super::mirror::Mirror;

/// One step, as it is shown.
#[derive(Debug)]
pub struct View<'a> {
    /// What happened.
    pub step: &'a Step,
    /// What came of it.
    pub actions: &'a [Action<Traced>],
    /// The counts before it.
    pub before: Snapshot,
    /// The connections and requests before it.
    pub mirror: &'a Mirror,
    /// The pool after it.
    pub pool: &'a PoolState<Traced>,
}

/// A trace from which step after step is read.
#[derive(Debug)]
pub struct Watch<R> {
    replay: Replay<R>,
    mirror: Mirror,
    actions: Vec<Action<Traced>>,
    start: Vec<Action<Traced>>,
}

impl<R: Read> Watch<R> {
    /// Reads the beginning.
    ///
    /// # Errors
    ///
    /// When this is no trace, or not one that can be begun.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut start = Vec::new();
        let replay = Replay::with_sink(source, &mut start)?;
        let mirror = Mirror::of(replay.pool());
        Ok(Self { replay, mirror, actions: Vec::new(), start })
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &TraceHeader {
        self.replay.header()
    }

    /// What making the pool brought about, if the trace begins with it.
    pub fn start(&self) -> &[Action<Traced>] {
        &self.start
    }

    /// The pool as it is now.
    pub fn pool(&self) -> &PoolState<Traced> {
        self.replay.pool()
    }

    /// The connections and requests as they are now.
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// How many steps there were.
    pub fn steps(&self) -> u64 {
        self.replay.steps()
    }

    /// Shows the next step; `Ok(None)` at the end.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read any further, or the replay goes another way.
    pub fn step<T>(&mut self, show: impl FnOnce(&View<'_>) -> T) -> Result<Option<T>, TraceError> {
        self.actions.clear();
        let before = self.replay.pool().snapshot();
        let Some(step) = self.replay.step(&mut self.actions)? else { return Ok(None) };
        let (actions, pool) = (self.actions.as_slice(), self.replay.pool());
        let view = View { step: &step, actions, before, mirror: &self.mirror, pool };
        let shown = show(&view);
        self.mirror.follow(&step, actions, pool);
        Ok(Some(shown))
    }

    /// Shows every step until it is told to stop; whether it was.
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

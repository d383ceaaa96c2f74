//! Reads the trace of a topology step by step: each step with its actions, and what it changed.

use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use cenote_core::topology::{Action, TopologyDescription};
use cenote_core::trace::TraceError;
use cenote_core::trace::topology::{Replay, Step, TraceHeader};

use super::change::Change;

/// A step and its context.
#[derive(Debug)]
pub struct View<'a> {
    /// The step.
    pub step: &'a Step,
    /// The actions.
    pub actions: &'a [Action],
    /// The topology after the step.
    pub topology: &'a Arc<TopologyDescription>,
    /// What it changed, if anything.
    pub change: Option<&'a Change>,
}

/// A trace that is replayed step by step.
#[derive(Debug)]
pub struct StepReader<R> {
    replay: Replay<R>,
}

impl<R: Read> StepReader<R> {
    /// Reads the beginning of a trace.
    ///
    /// # Errors
    ///
    /// If this is not a trace of a topology, or its beginning is invalid.
    pub fn new(source: R) -> Result<Self, TraceError> {
        Ok(Self { replay: Replay::new(source)? })
    }

    /// The trace's header.
    pub fn header(&self) -> &TraceHeader {
        self.replay.header()
    }

    /// What is known of the servers now.
    pub fn topology(&self) -> &Arc<TopologyDescription> {
        self.replay.topology().description()
    }

    /// The number of steps so far.
    pub fn steps(&self) -> u64 {
        self.replay.steps()
    }

    /// Replays the next step and passes it to `show`; `Ok(None)` at the end.
    ///
    /// # Errors
    ///
    /// If the trace is damaged, or the replay differs from it.
    pub fn step<T>(&mut self, show: impl FnOnce(&View<'_>) -> T) -> Result<Option<T>, TraceError> {
        let before = Arc::clone(self.topology());
        let mut actions = Vec::new();
        let Some(step) = self.replay.step(&mut actions)? else { return Ok(None) };
        let topology = self.replay.topology().description();
        let change = Change::of(&step, &before, &actions, topology);
        let view = View { step: &step, actions: &actions, topology, change: change.as_ref() };
        Ok(Some(show(&view)))
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

//! Leaves out of the trace of a topology what the steps of a pool do not follow.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use cenote_core::pool::Instant;
use cenote_core::topology::Topology;
use cenote_core::trace::topology::{Recorder, Replay, Step, StepInput, TraceHeader};
use cenote_core::trace::{JournalOptions, TraceError};

use super::change::{Change, Effect};
use super::record::written;
use crate::shrink::leave_out;

/// Steps of a topology that change the same as in the trace they come from.
#[derive(Debug)]
pub struct Shrunk {
    header: TraceHeader,
    start: Topology,
    steps: Vec<Step>,
}

/// As few steps as still show the changes by these steps of the client, each as it was, and no later than the time that is
/// given for it: that of what follows it.
///
/// # Errors
///
/// If the trace cannot be read, or the replay differs from it.
pub fn shrink(source: impl Read, wanted: &BTreeMap<u64, Instant>) -> Result<Shrunk, TraceError> {
    let mut replay = Replay::new(source)?;
    let (mut header, mut start) = (replay.header().clone(), replay.topology().clone());
    let mut steps = Vec::new();
    while let Some(step) = replay.step(&mut |_| {})? {
        if step.lost_before.is_some() {
            // It begins again with the state after the gap, which includes this step.
            steps.clear();
            start = replay.topology().clone();
            header.start = step.at;
        } else if matches!(step.input, StepInput::Topology(_)) {
            steps.push(step);
        }
    }
    let last = steps.iter().rposition(|step| wanted.contains_key(&step.client_step));
    steps.truncate(last.map_or(0, |last| last + 1));
    let changes = changes(&start, &steps, wanted);
    let mut taken = 0;
    let mut steps = leave_out(steps, |rest| {
        taken += rest.len();
        (taken < TAKEN_MAX).then(|| self::changes(&start, rest, wanted) == changes)
    });
    let mut latest = None;
    for step in steps.iter_mut().rev() {
        latest = wanted.get(&step.client_step).copied().into_iter().chain(latest).min();
        step.at = latest.map_or(step.at, |latest| step.at.min(latest));
    }
    Ok(Shrunk { header, start, steps })
}

/// The limit of steps that are taken: about ten seconds.
const TAKEN_MAX: usize = 2_000_000;

/// What each of the wanted steps changes.
fn changes(
    start: &Topology,
    steps: &[Step],
    wanted: &BTreeMap<u64, Instant>,
) -> BTreeMap<u64, Vec<Effect>> {
    let (mut topology, mut changes) = (start.clone(), BTreeMap::new());
    for step in steps {
        let StepInput::Topology(input) = &step.input else { continue };
        let (before, mut actions) = (Arc::clone(topology.description()), Vec::new());
        topology.handle(input.clone(), &mut actions);
        if wanted.contains_key(&step.client_step) {
            let change = Change::of(step, &before, &actions, topology.description());
            changes.insert(step.client_step, change.map(|it| it.effects).unwrap_or_default());
        }
    }
    changes
}

impl Shrunk {
    /// How many steps are left.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The new number of a step of the client.
    #[must_use]
    pub fn number_of(&self, client_step: u64) -> Option<u64> {
        let at = self.steps.iter().position(|step| step.client_step == client_step)?;
        Some(at as u64 + 1)
    }

    /// Writes the trace.
    ///
    /// # Errors
    ///
    /// None: it writes to memory.
    pub fn write(self) -> io::Result<Vec<u8>> {
        let Self { header, start, steps } = self;
        let recorder = Recorder::new(start).with_journal(header.start, JournalOptions::default());
        let mut recorder = recorder;
        for Step { at, input, .. } in steps {
            if let StepInput::Topology(input) = input {
                recorder.handle(at, input, &mut |_| {});
            }
        }
        written(recorder, header.origin)
    }
}

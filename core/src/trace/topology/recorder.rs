//! A topology whose inputs are recorded.

use core::fmt;
use core::ops::Deref;

use crate::pool::Instant;
use crate::topology::{Action, ActionSink, Input, Topology};
use crate::trace::JournalOptions;

use super::action::ActionRecord;
use super::chunk::{Chunk, Entry, Recorded};
use super::flight::{FlightRecorder, FlightRecording};
use super::journal::Journal;
use super::selection::SelectionRecord;

/// A [`Topology`] with a recorder around it. It dereferences to the topology for its getters.
///
/// It records nothing, the last inputs in a bounded memory ([flight recorder](Self::with_flight_recorder)), all inputs
/// in a [journal](Self::with_journal) whose chunks the shell writes into a file, or both. It reads no clock and does no
/// I/O: the embedder calls it under the lock of the topology.
pub struct Recorder {
    topology: Topology,
    steps: u64,
    /// Boxed, so that a topology that is not recorded is as small as ever.
    recording: Option<Box<Recording>>,
}

#[derive(Default)]
struct Recording {
    journal: Option<Journal>,
    flight: Option<FlightRecorder>,
}

impl Recording {
    fn record(&mut self, topology: &Topology, steps: u64, entry: Entry) {
        if let Some(flight) = &mut self.flight {
            flight.record(topology, steps, entry.clone());
        }
        if let Some(journal) = &mut self.journal {
            journal.record(topology, steps, entry);
        }
    }
}

impl Recorder {
    /// Wraps a topology, new or not; records nothing yet.
    #[must_use]
    pub const fn new(topology: Topology) -> Self {
        Self { topology, steps: 0, recording: None }
    }

    /// Keeps the last inputs in about `bytes` bytes. Recording begins with the present state; what an input holds
    /// is shared with the topology, and a check that tells nothing new takes some 200 bytes.
    #[must_use]
    pub fn with_flight_recorder(mut self, now: Instant, bytes: usize) -> Self {
        let flight = FlightRecorder::new(now, bytes, &self.topology, self.steps);
        self.recording.get_or_insert_default().flight = Some(flight);
        self
    }

    /// Records everything from now on, in chunks that the shell has to [take](Self::take_chunk). Of the options
    /// `chunk_bytes` and `backlog` count; actions are always recorded.
    #[must_use]
    pub fn with_journal(mut self, now: Instant, options: JournalOptions) -> Self {
        let journal = Journal::new(now, options, &self.topology, self.steps);
        self.recording.get_or_insert_default().journal = Some(journal);
        self
    }

    /// As [`Topology::handle`]; `now` is the time of the input, on the clock of the pools.
    ///
    /// An input of more than 256 KiB, which a server can make up and no replica set is, is not recorded: the trace
    /// tells how many are missing, and goes on as soon as the topology can be written again.
    pub fn handle(&mut self, now: Instant, input: Input, out: &mut impl ActionSink) {
        let Self { topology, steps, recording } = self;
        *steps += 1;
        let Some(recording) = recording else { return topology.handle(input, out) };
        let mut actions = Vec::new();
        let recorded = input.clone();
        topology.handle(input, &mut |action: Action| {
            actions.push(ActionRecord::of(&action));
            out.act(action);
        });
        recording.record(topology, *steps, Entry::new(now, recorded, actions, topology));
    }

    /// How many steps there were, also before the recording: [`Step::client_step`](super::Step::client_step) of the last one.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether anything is recorded.
    #[must_use]
    pub const fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Records a request for a server that has waited until now.
    pub fn selected(&mut self, now: Instant, selection: SelectionRecord) {
        let Self { topology, steps, recording } = self;
        if let Some(recording) = recording {
            *steps += 1;
            let input = Recorded::Selection(selection);
            recording.record(topology, *steps, Entry { now, input, actions: Vec::new() });
        }
    }

    /// Whether everything is recorded: there is a journal.
    #[must_use]
    pub fn is_journaled(&self) -> bool {
        self.journal().is_some()
    }

    /// A copy of what the flight recorder holds; `None` if there is none.
    #[must_use]
    pub fn flight_recording(&self) -> Option<FlightRecording> {
        self.recording.as_ref()?.flight.as_ref()?.copy()
    }

    /// Whether there is a full chunk of the journal to take.
    #[must_use]
    pub fn has_full_chunk(&self) -> bool {
        self.journal().is_some_and(Journal::is_due)
    }

    /// The oldest full chunk of the journal, if there is one. Chunks must be written in this order.
    pub fn take_chunk(&mut self) -> Option<Chunk> {
        self.recording.as_mut()?.journal.as_mut()?.take()
    }

    /// Completes the present chunk of the journal: before a trace ends, and now and then, so that little is lost if
    /// the process ends. Does nothing if there was no input since the last chunk.
    pub fn flush(&mut self) {
        if let Some(journal) = self.recording.as_mut().and_then(|it| it.journal.as_mut()) {
            journal.flush();
        }
    }

    /// Ends the journal, when its chunks will not be taken any more, and drops what it holds. A flight recorder goes
    /// on.
    pub fn end_journal(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.journal = None;
        }
        self.recording.take_if(|recording| recording.flight.is_none());
    }

    fn journal(&self) -> Option<&Journal> {
        self.recording.as_ref()?.journal.as_ref()
    }
}

impl Deref for Recorder {
    type Target = Topology;

    fn deref(&self) -> &Topology {
        &self.topology
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_flight_recorder = self.recording.as_ref().is_some_and(|it| it.flight.is_some());
        f.debug_struct("Recorder")
            .field("topology", &self.topology)
            .field("flight_recorder", &has_flight_recorder)
            .field("journal", &self.is_journaled())
            .finish()
    }
}

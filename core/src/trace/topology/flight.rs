//! The flight recorder: the last inputs of a topology, in bounded memory.

use core::fmt;
use std::io;

use crate::pool::Instant;
use crate::topology::Topology;
use crate::trace::TraceInfo;

use super::chunk::{Chunk, Entry, is_writable};
use super::writer::TraceWriter;

/// A bounded recording of the last inputs, with a state from which a replay can begin.
///
/// It has two halves. When one is full, the other is begun anew, so that there is always at least one whole half to
/// look back on.
pub(super) struct FlightRecorder {
    /// Bytes of a half.
    half: usize,
    present: Chunk,
    /// What comes before it.
    past: Option<Chunk>,
    /// An input could not be recorded: there is nothing after it.
    has_stopped: bool,
}

impl FlightRecorder {
    pub(super) fn new(now: Instant, bytes: usize, topology: &Topology, steps: u64) -> Self {
        let mut flight =
            Self { half: bytes / 2, present: Chunk::default(), past: None, has_stopped: true };
        flight.resume(now, topology, steps);
        flight
    }

    /// Records an input, after which the topology is as it is now, and there were so many steps.
    pub(super) fn record(&mut self, topology: &Topology, steps: u64, entry: Entry) {
        let now = entry.now;
        if self.has_stopped || !entry.is_writable() {
            self.has_stopped = true;
            return self.resume(now, topology, steps);
        }
        self.present.push(entry);
        if self.present.weight >= self.half && is_writable(topology) {
            let next = Chunk::from(now, topology, steps, 0);
            self.past = Some(core::mem::replace(&mut self.present, next));
        }
    }

    /// Begins anew in the present state, if that can be written.
    fn resume(&mut self, now: Instant, topology: &Topology, steps: u64) {
        if is_writable(topology) {
            (self.present, self.past) = (Chunk::from(now, topology, steps, 0), None);
            self.has_stopped = false;
        }
    }

    /// `None` if nothing could be recorded yet.
    pub(super) fn copy(&self) -> Option<FlightRecording> {
        let chunks = self.past.iter().chain([&self.present]).cloned();
        self.present.start.is_some().then(|| FlightRecording { chunks: chunks.collect() })
    }
}

/// The content of a flight recorder at one moment: taken under the lock of the topology, which shares it, and written
/// without the lock.
#[derive(Clone)]
pub struct FlightRecording {
    chunks: Vec<Chunk>,
}

impl FlightRecording {
    /// How many inputs it holds.
    #[must_use]
    pub fn inputs(&self) -> u64 {
        self.chunks.iter().map(Chunk::inputs).sum()
    }

    /// Writes it as a whole trace. Blocks as long as the sink does.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn write_to<W: io::Write>(&self, info: &TraceInfo, sink: W) -> io::Result<W> {
        let mut writer = TraceWriter::new(sink, info.clone());
        let mut is_first = true;
        for chunk in &self.chunks {
            if std::mem::take(&mut is_first) {
                writer.write(chunk)?;
            } else {
                // It goes on where the half before it ended.
                writer.go_on(chunk)?;
            }
        }
        writer.finish()
    }
}

impl fmt::Debug for FlightRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlightRecording({} inputs)", self.inputs())
    }
}

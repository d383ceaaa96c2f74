//! The flight recorder: the last inputs of a pool, in memory that was set aside.

use alloc::vec::Vec;
use core::fmt;
use std::io;

use crate::pool::{Input, Instant, PoolState, PoolTypes};

use super::caller_location::CallerLocation;
use super::cause::TraceCause;
use super::chunk::Chunk;
use super::compact::{CompactInput, Mark};
use super::stage::StageRecord;
use super::traced::fingerprint_of;
use super::writer::{TraceInfo, TraceWriter};

/// A bounded recording of the last inputs, with a checkpoint from which a replay can begin.
///
/// It has two halves. When one is full, the other is begun anew with the state that the pool is in
/// at that moment, so that there is always at least one whole half to look back on. A warm
/// check-out and check-in take about fourteen bytes and nothing allocates, except that the
/// checkpoint of a state grows with the pool the first time that the pool is so large.
pub(super) struct FlightRecorder {
    present: Chunk,
    past: Chunk,
    /// Whether the other half holds anything that comes before this one.
    has_past: bool,
}

impl FlightRecorder {
    pub(super) fn new<S: PoolTypes>(
        bytes: usize,
        pool: &PoolState<S>,
        place: Option<CallerLocation>,
    ) -> Self {
        let mut present = Chunk::with_capacity(bytes / 2);
        let mut past = Chunk::with_capacity(bytes / 2);
        present.restart(pool, 0, place);
        past.restart(pool, 0, place);
        Self { present, past, has_past: false }
    }

    /// Records an input that will not be refused, if there is room for its compact form; otherwise nothing is changed.
    #[inline(always)]
    pub(super) fn record_compact(&mut self, now: Instant, input: CompactInput) -> bool {
        self.present.log.record_compact(now, input)
    }

    #[inline(always)]
    pub(super) const fn mark(&self) -> Mark {
        self.present.log.mark()
    }

    /// Takes back what was [recorded](Self::record_compact) since `mark`.
    pub(super) fn take_back(&mut self, mark: Mark) {
        self.present.log.take_back(mark);
    }

    pub(super) fn record<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        now: Instant,
        input: &Input<S>,
    ) where
        S::Cause: TraceCause,
    {
        if self.present.log.record_if_compact(now, input) {
            return;
        }
        if !self.present.log.has_room() {
            self.turn_over(pool);
        }
        self.present.log.record(now, input);
    }

    /// Records the place of the check-outs that follow, if it is another one.
    pub(super) fn set_place<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        place: Option<CallerLocation>,
    ) {
        if self.present.log.is_at(place) {
            return;
        }
        if !self.present.log.has_room() {
            self.turn_over(pool);
        }
        self.present.log.record_place(place);
    }

    /// Records to which stage an establishment has come, or in which a connection failed.
    pub(super) fn enter_stage<S: PoolTypes>(&mut self, pool: &PoolState<S>, record: StageRecord) {
        if !self.present.log.has_room() {
            self.turn_over(pool);
        }
        self.present.log.record_stage(record);
    }

    /// Records which step of the client the next input follows.
    pub(super) fn follow<S: PoolTypes>(&mut self, pool: &PoolState<S>, step: u64) {
        if !self.present.log.has_room() {
            self.turn_over(pool);
        }
        self.present.log.record_follows(step);
    }

    pub(super) fn refused(&mut self) {
        self.present.log.mark_refused();
    }

    #[cold]
    #[inline(never)]
    fn turn_over<S: PoolTypes>(&mut self, pool: &PoolState<S>) {
        core::mem::swap(&mut self.present, &mut self.past);
        self.present.restart(pool, 0, self.past.log.context.place);
        self.has_past = true;
    }

    /// A copy of the recording, with the fingerprint of the present state.
    pub(super) fn copy<S: PoolTypes>(&self, pool: &PoolState<S>) -> FlightRecording {
        let past = self.has_past.then(|| self.past.clone());
        let chunks = past.into_iter().chain([self.present.clone()]).collect();
        FlightRecording { chunks, fingerprint: pool.fingerprint() }
    }
}

/// The content of a flight recorder at one moment: taken under the pool's lock, which costs a copy
/// of its memory, and written without it.
#[derive(Clone)]
pub struct FlightRecording {
    chunks: Vec<Chunk>,
    fingerprint: u64,
}

impl FlightRecording {
    /// How many inputs it holds.
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
            if is_first {
                writer.write(chunk)?;
            } else {
                // It goes on where the half before it ended, in a state that is known: a check.
                let known =
                    chunk.start.as_ref().and_then(|start| fingerprint_of(&start.checkpoint));
                known.map_or(Ok(()), |fingerprint| writer.fingerprint(fingerprint))?;
                writer.go_on(chunk)?;
            }
            is_first = false;
        }
        writer.fingerprint(self.fingerprint)?;
        writer.finish()
    }
}

impl fmt::Debug for FlightRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlightRecording({} inputs)", self.inputs())
    }
}

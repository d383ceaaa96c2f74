//! A pool whose inputs are recorded.

use core::fmt;
use core::ops::Deref;

use crate::error::Stage;
use crate::pool::{ActionSink, ConnId, Input, Instant, Misuse, PoolState, PoolTypes};

use super::caller_location::CallerLocation;
use super::cause::TraceCause;
use super::chunk::Chunk;
use super::compact::CompactInput;
use super::flight::{FlightRecorder, FlightRecording};
use super::journal::{Journal, JournalOptions};
use super::recording::Recording;
use super::stage::StageRecord;

/// A [`PoolState`] with a recorder around it. It has the same [`handle`](Self::handle), and
/// dereferences to the pool for its getters.
///
/// It records nothing, the last inputs in a bounded memory ([flight
/// recorder](Self::with_flight_recorder)), all inputs in a [journal](Self::with_journal) whose
/// chunks the shell writes into a file, or both. Neither reads a clock or does I/O: recording
/// happens under the pool's lock, and [`TraceWriter`](super::TraceWriter) does the rest without it.
///
/// ```
/// use cenote_core::pool::{NoPayload, Input, Instant, PoolOptions, PoolState};
/// use cenote_core::trace::{Recorder, TraceInfo};
///
/// let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {})?;
/// let mut pool = Recorder::new(pool).with_flight_recorder(64 << 10);
/// pool.handle(Instant::from_nanos(5), Input::Ready, &mut |_| {})?;
/// let recording = pool.flight_recording().expect("there is a flight recorder");
///
/// let trace = recording.write_to(&TraceInfo::default(), Vec::new())?;
/// # #[cfg(feature = "protocol")] {
/// use cenote_core::trace::Replay;
///
/// let mut replay = Replay::new(trace.as_slice())?;
/// while let Some(step) = replay.step(&mut |_| {})? {
///     println!("{} {}", step.at, step.input.name());
/// }
/// assert_eq!(replay.pool().fingerprint(), pool.fingerprint());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recorder<S: PoolTypes> {
    pub(super) pool: PoolState<S>,
    pub(super) recording: Recording,
    /// Also of check-outs before a recording that begins later.
    place: Option<CallerLocation>,
}

impl<S: PoolTypes> Recorder<S>
where
    S::Cause: TraceCause,
{
    /// Wraps a pool, new or not; records nothing yet.
    pub const fn new(pool: PoolState<S>) -> Self {
        Self { pool, recording: Recording::Nothing, place: None }
    }

    /// Keeps the last inputs in `bytes` bytes, which are allocated now (at least a few hundred),
    /// with an eighth more for texts and two checkpoints of the pool. Recording begins with the
    /// present state.
    #[must_use]
    pub fn with_flight_recorder(mut self, bytes: usize) -> Self {
        self.begin_flight_recorder(bytes);
        self
    }

    /// As [`with_flight_recorder`](Self::with_flight_recorder), on a recorder that is in use. What one has kept before is lost.
    pub fn begin_flight_recorder(&mut self, bytes: usize) {
        let flight = FlightRecorder::new(bytes, &self.pool, self.place);
        self.recording.set_flight(flight);
    }

    /// Records everything from now on, in chunks that the shell has to [take](Self::take_chunk).
    #[must_use]
    pub fn with_journal(mut self, options: JournalOptions) -> Self {
        self.begin_journal(options);
        self
    }

    /// As [`with_journal`](Self::with_journal), on a recorder that is in use. A journal that has
    /// begun is replaced, with its chunks.
    pub fn begin_journal(&mut self, options: JournalOptions) {
        let journal = Journal::new(options, &self.pool, self.place);
        self.recording.set_journal(journal);
    }

    /// As [`PoolState::handle`]. The input is recorded before it is handled, so that it is there
    /// even if handling it panics. Refused inputs are recorded as such.
    ///
    /// # Errors
    ///
    /// Those of [`PoolState::handle`].
    #[inline(always)]
    pub fn handle(
        &mut self,
        now: Instant,
        input: Input<S>,
        out: &mut impl ActionSink<S>,
    ) -> Result<(), Misuse<S>> {
        if let Err(reason) = self.pool.validate(&input) {
            let misuse = Misuse { input, reason };
            self.refuse(now, &misuse);
            return Err(misuse);
        }
        if let Recording::Flight(flight) = &mut self.recording {
            if !CompactInput::of(&input).is_some_and(|it| flight.record_compact(now, it)) {
                self.recording.proceed(&mut self.pool, now, input, out);
                return Ok(());
            }
        } else if self.is_journaled() {
            self.recording.proceed(&mut self.pool, now, input, out);
            return Ok(());
        }
        // The only call of this kind, so that a pool that is not recorded costs the same as one
        // without a recorder.
        self.pool.proceed(now, input, out);
        Ok(())
    }

    /// Records where in the program the check-outs that follow are called; `None` if that is not known. It holds
    /// for recordings that begin later, too. Costs
    /// five bytes where it is another place than before. A log of some thousand check-outs has room for 255
    /// different places.
    #[inline(never)]
    pub fn set_place(&mut self, place: Option<CallerLocation>) {
        self.place = place;
        self.recording.set_place(&self.pool, place);
    }

    /// Records to which stage the establishment of a connection has come, for a shell that knows: traces then tell where
    /// the time of an establishment goes, and where one hangs. Takes some ten bytes; does nothing unless something is
    /// [recorded](Self::is_recording).
    pub fn enter_stage(&mut self, now: Instant, id: ConnId, stage: Stage) {
        let record = StageRecord { at: now, connection: id.number(), stage, failed: None };
        self.recording.enter_stage(&self.pool, record);
    }

    /// Records that a connection failed in this stage, and which step of the client says so: traces then tell which
    /// connection made a server Unknown. Counted and recorded as for [`follow`](Self::follow).
    pub fn fail_in_stage(&mut self, now: Instant, id: ConnId, stage: Stage, step: u64) {
        let record = StageRecord { at: now, connection: id.number(), stage, failed: Some(step) };
        self.recording.enter_stage(&self.pool, record);
    }

    /// Records that the next input follows from a step of the client: what
    /// [`steps`](super::topology::Recorder::steps) counted when the topology, of which there is a trace as well, had been
    /// told. Does nothing unless something is [recorded](Self::is_recording).
    pub fn follow(&mut self, step: u64) {
        self.recording.follow(&self.pool, step);
    }

    /// Whether anything is recorded: there is a flight recorder or a journal.
    #[inline]
    pub const fn is_recording(&self) -> bool {
        !matches!(self.recording, Recording::Nothing)
    }

    /// Whether everything is recorded: there is a journal.
    pub const fn is_journaled(&self) -> bool {
        matches!(self.recording, Recording::Journal(_))
    }

    /// Whether there is a flight recorder.
    pub fn has_flight_recorder(&self) -> bool {
        self.recording.flight().is_some()
    }

    /// A copy of what the flight recorder holds; `None` if there is none.
    pub fn flight_recording(&self) -> Option<FlightRecording> {
        let flight = self.recording.flight()?;
        Some(flight.copy(&self.pool))
    }

    /// Whether there is a full chunk of the journal to take.
    #[inline]
    pub fn has_full_chunk(&self) -> bool {
        match &self.recording {
            Recording::Journal(both) => both.journal.is_due(),
            Recording::Nothing | Recording::Flight(_) => false,
        }
    }

    /// The oldest full chunk of the journal, if there is one. Chunks must be written in this order.
    pub fn take_chunk(&mut self) -> Option<Chunk> {
        self.recording.journal_mut()?.take()
    }

    /// Completes the present chunk of the journal, with a fingerprint at its end: before a trace
    /// ends, and now and then, so that little is lost if the process ends. Does nothing if there
    /// was no input since the last chunk.
    pub fn flush(&mut self) {
        if let Some(journal) = self.recording.journal_mut() {
            journal.flush(&self.pool);
        }
    }

    /// Returns a written chunk, so that its memory is reused.
    pub fn give_back(&mut self, chunk: Chunk) {
        if let Some(journal) = self.recording.journal_mut() {
            journal.give_back(chunk);
        }
    }

    /// Ends the journal, when its chunks will not be taken any more, and drops what it holds. A
    /// flight recorder goes on.
    pub fn end_journal(&mut self) {
        self.recording.end_journal();
    }

    /// [`PoolState::next_available`], which is not recorded.
    #[inline]
    pub fn next_available(&mut self) -> Option<(ConnId, &mut S::Conn)> {
        self.pool.next_available()
    }

    /// [`PoolState::available_mut`], which is not recorded.
    pub fn available_mut(&mut self, id: ConnId) -> Option<&mut S::Conn> {
        self.pool.available_mut(id)
    }

    /// Ends the recording.
    pub fn into_pool(self) -> PoolState<S> {
        self.pool
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, now: Instant, Misuse { input, reason: _ }: &Misuse<S>) {
        self.recording.refuse(&self.pool, now, input);
    }
}

impl<S: PoolTypes> Deref for Recorder<S> {
    type Target = PoolState<S>;

    fn deref(&self) -> &PoolState<S> {
        &self.pool
    }
}

impl<S: PoolTypes> fmt::Debug for Recorder<S>
where
    S::Cause: TraceCause,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, recording, place: _ } = self;
        f.debug_struct("Recorder")
            .field("pool", pool)
            .field("flight_recorder", &recording.flight().is_some())
            .field("journal", &self.is_journaled())
            .finish()
    }
}

#[cfg(all(test, feature = "protocol"))]
pub(super) mod tests;

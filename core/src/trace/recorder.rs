//! A pool whose inputs are recorded.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use crate::pool::{Action, ActionSink, Input, Instant, Misuse, PoolState, Shell};

use super::action::ActionRecord;
use super::cause::TraceCause;
use super::chunk::Chunk;
use super::flight::{FlightRecorder, FlightRecording};
use super::journal::{Journal, JournalOptions};

/// A [`PoolState`] with a recorder around it: the same [`handle`](Self::handle), and to look at
/// it is the pool.
///
/// What it records, if anything: the last inputs in a bounded memory, as a
/// [flight recorder](Self::with_flight_recorder); or all of them in a [journal](Self::with_journal)
/// whose chunks somebody writes into a file. Both at once, if asked for. Neither looks at a clock
/// or writes anything: this stays under the pool's lock, and [`TraceWriter`](super::TraceWriter)
/// does the rest without it.
///
/// ```
/// use cenote_core::pool::{Bare, Input, Instant, PoolOptions, PoolState};
/// use cenote_core::trace::{Recorder, Replay, TraceInfo};
///
/// let pool = PoolState::<Bare>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {})?;
/// let mut pool = Recorder::new(pool).with_flight_recorder(64 << 10);
/// pool.handle(Instant::from_nanos(5), Input::Ready, &mut |_| {})?;
/// let recording = pool.flight_recording().expect("there is a flight recorder");
///
/// let trace = recording.write_to(&TraceInfo::default(), Vec::new())?;
/// let mut replay = Replay::new(trace.as_slice())?;
/// while let Some(step) = replay.step(&mut |_| {})? {
///     println!("{} {}", step.at, step.input.name());
/// }
/// assert_eq!(replay.pool().fingerprint(), pool.fingerprint());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recorder<S: Shell> {
    pool: PoolState<S>,
    tapes: Option<Box<Tapes>>,
}

/// Apart, so that a pool that is not recorded pays for one pointer.
#[derive(Default)]
struct Tapes {
    flight: Option<FlightRecorder>,
    journal: Option<Journal>,
    /// What came of the present input, if that is recorded.
    actions: Vec<ActionRecord>,
}

impl<S: Shell> Recorder<S>
where
    S::Cause: TraceCause,
{
    /// Around a pool, new or not; records nothing yet.
    pub const fn new(pool: PoolState<S>) -> Self {
        Self { pool, tapes: None }
    }

    /// Keeps the last inputs in so many bytes, which are set aside now (at least a few hundred);
    /// besides, it needs an eighth more for texts, and room for two images of the pool's state.
    /// Recording begins in the state that the pool is in.
    #[must_use]
    pub fn with_flight_recorder(mut self, bytes: usize) -> Self {
        let flight = FlightRecorder::new(bytes, &self.pool);
        self.tapes.get_or_insert_default().flight = Some(flight);
        self
    }

    /// Records everything from now on, in chunks that somebody has to [take](Self::take_chunk).
    #[must_use]
    pub fn with_journal(mut self, options: JournalOptions) -> Self {
        let journal = Journal::new(options, &self.pool);
        self.tapes.get_or_insert_default().journal = Some(journal);
        self
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
        let Some(tapes) = &mut self.tapes else { return self.pool.handle(now, input, out) };
        if tapes.journal.is_some() {
            return handle_journaled(tapes, &mut self.pool, now, input, out);
        }
        if let Some(flight) = &mut tapes.flight {
            flight.record(&self.pool, now, &input);
        }
        let outcome = self.pool.handle(now, input, out);
        if outcome.is_err() {
            self.refused();
        }
        outcome
    }

    /// A copy of what the flight recorder holds; `None` if there is none.
    pub fn flight_recording(&self) -> Option<FlightRecording> {
        let flight = self.tapes.as_ref()?.flight.as_ref()?;
        Some(flight.copy(&self.pool))
    }

    /// Whether a chunk of the journal is full and wants to be taken.
    #[inline]
    pub fn has_full_chunk(&self) -> bool {
        self.tapes.as_ref().is_some_and(|tapes| tapes.journal.as_ref().is_some_and(Journal::is_due))
    }

    /// The oldest full chunk of the journal, if there is one. Chunks must be written in this order.
    pub fn take_chunk(&mut self) -> Option<Chunk> {
        self.journal()?.take()
    }

    /// Makes what the journal holds a full chunk, with a fingerprint at its end: before a trace
    /// ends, and now and then, so that not much is missing if the process ends.
    pub fn flush(&mut self) {
        let Self { pool, tapes } = self;
        if let Some(journal) = tapes.as_mut().and_then(|tapes| tapes.journal.as_mut()) {
            journal.flush(pool);
        }
    }

    /// Gives the memory of a chunk that was written back, to be used again.
    pub fn give_back(&mut self, chunk: Chunk) {
        if let Some(journal) = self.journal() {
            journal.give_back(chunk);
        }
    }

    /// Ends the recording.
    pub fn into_pool(self) -> PoolState<S> {
        self.pool
    }

    #[cold]
    fn refused(&mut self) {
        if let Some(flight) = self.tapes.as_mut().and_then(|tapes| tapes.flight.as_mut()) {
            flight.refused();
        }
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        self.tapes.as_mut()?.journal.as_mut()
    }
}

/// Apart, so that a pool without a journal stays small.
#[inline(never)]
fn handle_journaled<S: Shell>(
    tapes: &mut Tapes,
    pool: &mut PoolState<S>,
    now: Instant,
    input: Input<S>,
    out: &mut impl ActionSink<S>,
) -> Result<(), Misuse<S>>
where
    S::Cause: TraceCause,
{
    let Tapes { flight, journal, actions } = tapes;
    if let Some(flight) = flight {
        flight.record(pool, now, &input);
    }
    let mut wanted = false;
    if let Some(journal) = journal {
        journal.record(pool, now, &input);
        wanted = journal.wants_actions();
    }
    actions.clear();
    let outcome = pool.handle(now, input, &mut Overhearing { out, actions, wanted });
    if let Some(journal) = journal {
        journal.handled(pool, outcome.is_err(), actions);
    }
    if let (Err(_), Some(flight)) = (&outcome, flight) {
        flight.refused();
    }
    outcome
}

/// Passes everything on and takes note of it, if that is wanted.
struct Overhearing<'a, K> {
    out: &'a mut K,
    actions: &'a mut Vec<ActionRecord>,
    wanted: bool,
}

impl<S: Shell, K: ActionSink<S>> ActionSink<S> for Overhearing<'_, K> {
    fn act(&mut self, action: Action<S>) {
        if self.wanted {
            self.actions.extend(ActionRecord::of(&action));
        }
        self.out.act(action);
    }

    fn wants_events(&self) -> bool {
        self.out.wants_events()
    }
}

impl<S: Shell> Deref for Recorder<S> {
    type Target = PoolState<S>;

    fn deref(&self) -> &PoolState<S> {
        &self.pool
    }
}

impl<S: Shell> fmt::Debug for Recorder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, tapes } = self;
        let flight = tapes.as_ref().is_some_and(|tapes| tapes.flight.is_some());
        let journal = tapes.as_ref().is_some_and(|tapes| tapes.journal.is_some());
        f.debug_struct("Recorder")
            .field("pool", pool)
            .field("flight_recorder", &flight)
            .field("journal", &journal)
            .finish()
    }
}

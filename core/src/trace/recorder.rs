//! A pool whose inputs are recorded.

use core::fmt;
use core::ops::Deref;

use crate::error::Stage;
use crate::pool::{ActionSink, ConnId, Input, Instant, Misuse, PoolState, PoolTypes};

use super::caller_location::CallerLocation;
use super::cause::TraceCause;
use super::chunk::Chunk;
use super::flight::{FlightRecorder, FlightRecording};
use super::input_log::CompactInput;
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
        let flight = FlightRecorder::new(bytes, &self.pool, self.place);
        self.recording.set_flight(flight);
        self
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
pub(super) mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::pool::{
        Action, ActionSink, CheckOutError, NoPayload, PoolOptions, Purpose, WaiterId,
    };
    use crate::trace::{Replay, TraceInfo, TraceWriter, Traced};

    fn recorder() -> Recorder<NoPayload> {
        let pool = PoolState::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {});
        Recorder::new(pool.expect("options"))
    }

    fn ready(recorder: &mut Recorder<NoPayload>) {
        recorder.handle(Instant::ORIGIN, Input::Ready, &mut |_| {}).expect("legal");
    }

    fn chunks(recorder: &mut Recorder<NoPayload>) -> Vec<u64> {
        core::iter::from_fn(|| recorder.take_chunk()).map(|chunk| chunk.inputs()).collect()
    }

    /// A whole trace of what was recorded.
    pub(in crate::trace) fn trace_of(recorder: &mut Recorder<NoPayload>) -> Vec<u8> {
        recorder.flush();
        let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
        writer.write(&recorder.take_chunk().expect("what happened")).expect("memory");
        writer.finish().expect("memory")
    }

    #[test]
    fn it_says_what_it_records() {
        let told = |it: &Recorder<NoPayload>| (it.is_recording(), it.is_journaled());
        assert_eq!(told(&recorder()), (false, false));
        assert_eq!(told(&recorder().with_flight_recorder(1000)), (true, false));
        let mut both =
            recorder().with_flight_recorder(1000).with_journal(JournalOptions::default());
        assert_eq!(told(&both), (true, true));
        both.end_journal();
        assert_eq!(told(&both), (true, false), "a flight recorder goes on");
        assert!(both.take_chunk().is_none() && both.flight_recording().is_some());
        let mut both = recorder().with_journal(JournalOptions::default());
        both.end_journal();
        assert_eq!(told(&both), (false, false));
    }

    /// A pool that is not used has no growing trace.
    #[test]
    fn what_was_told_is_not_told_again() {
        let mut recorder = recorder().with_journal(JournalOptions::default());
        assert!(!recorder.has_full_chunk());
        recorder.flush();
        assert!(recorder.has_full_chunk());
        assert_eq!(chunks(&mut recorder), [0], "the state in which it begins");
        recorder.flush();
        assert!(chunks(&mut recorder).is_empty());
        ready(&mut recorder);
        assert!(!recorder.has_full_chunk());
        recorder.flush();
        recorder.flush();
        assert_eq!(chunks(&mut recorder), [1]);
    }

    #[test]
    fn a_trace_says_whether_it_begins_with_the_pool() {
        let begun_at = |now, inputs: &[Input<NoPayload>]| {
            let pool = PoolState::new(now, PoolOptions::default(), &mut |_| {}).expect("options");
            let mut recorder = Recorder::<NoPayload>::new(pool);
            for input in inputs {
                recorder.handle(now, input.clone(), &mut |_| {}).expect("legal");
            }
            let mut recorder = recorder.with_journal(JournalOptions::default());
            let trace = trace_of(&mut recorder);
            Replay::new(trace.as_slice()).expect("a trace").header().is_new
        };
        assert!(begun_at(Instant::ORIGIN, &[]));
        assert!(begun_at(Instant::from_nanos(5), &[]));
        assert!(!begun_at(Instant::ORIGIN, &[Input::Ready]));
    }

    #[test]
    fn memory_that_is_given_back_lies_ready() {
        let mut recorder = recorder().with_journal(JournalOptions::default());
        recorder.flush();
        let chunk = recorder.take_chunk().expect("a full one");
        recorder.give_back(chunk);
        assert_eq!(recorder.recording.journal_mut().map(|it| it.spare_chunks()), Some(1));
    }

    #[test]
    fn a_trace_begins_with_the_first_chunk() {
        let mut recorder = recorder().with_journal(JournalOptions::default());
        recorder.flush();
        let first = recorder.take_chunk().expect("where it begins");
        ready(&mut recorder);
        recorder.flush();
        let second = recorder.take_chunk().expect("what came then");
        let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
        let error = writer.write(&second).expect_err("one before it is missing");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        writer.write(&first).expect("memory");
        writer.write(&second).expect("memory");
        assert!(!writer.finish().expect("memory").is_empty());
    }

    #[test]
    fn a_replay_asks_for_events_if_its_sink_wants_them() {
        struct Counts {
            wants_events: bool,
            actions: usize,
        }
        impl ActionSink<Traced> for Counts {
            fn act(&mut self, _: Action<Traced>) {
                self.actions += 1;
            }

            fn wants_events(&self) -> bool {
                self.wants_events
            }
        }
        // Whether there is anything to compare, or not.
        for has_actions in [true, false] {
            let options = JournalOptions::default().with_actions(has_actions);
            let mut recorder = recorder().with_journal(options);
            // Its only action is an event.
            ready(&mut recorder);
            let trace = trace_of(&mut recorder);
            for (wants_events, told) in [(true, 1), (false, 0)] {
                let mut replay = Replay::new(trace.as_slice()).expect("a trace");
                let mut sink = Counts { wants_events, actions: 0 };
                while replay.step(&mut sink).expect("it goes the same way").is_some() {}
                assert_eq!(sink.actions, told);
            }
        }
    }

    #[test]
    fn stages_stand_between_the_inputs() {
        let mut recorder =
            recorder().with_flight_recorder(1000).with_journal(JournalOptions::default());
        let (at, id) = (Instant::from_nanos, ConnId::from_parts(3, 0));
        ready(&mut recorder);
        recorder.enter_stage(at(5), id, Stage::Tcp);
        recorder.enter_stage(at(7), id, Stage::Hello);
        recorder.handle(at(9), Input::Timer, &mut |_| {}).expect("legal");
        recorder.fail_in_stage(at(8), id, Stage::Hello, 1 << 40);
        let flight = recorder.flight_recording().expect("there is a flight recorder");
        let flight = flight.write_to(&TraceInfo::default(), Vec::new()).expect("memory");
        for trace in [flight, trace_of(&mut recorder)] {
            let mut replay = Replay::new(trace.as_slice()).expect("a trace");
            let told = |stages: &[StageRecord]| -> Vec<_> {
                let told =
                    |it: &StageRecord| (it.at.as_nanos(), it.connection, it.stage, it.failed);
                stages.iter().map(told).collect()
            };
            let first = replay.step(&mut |_| {}).expect("no problem").expect("ready");
            assert_eq!((told(&first.stages), told(replay.later_stages())), (vec![], vec![]));
            let second = replay.step(&mut |_| {}).expect("no problem").expect("the timer");
            assert_eq!(
                told(&second.stages),
                [(5, 3, Stage::Tcp, None), (7, 3, Stage::Hello, None)]
            );
            assert_eq!(replay.verify().expect("the same"), 2);
            assert_eq!(told(replay.later_stages()), [(8, 3, Stage::Hello, Some(1 << 40))]);
        }
    }

    /// A trace does not hold what happened before it.
    #[test]
    fn a_pool_that_was_cleared_before_says_so() {
        let mut recorder = recorder();
        ready(&mut recorder);
        let clear = Input::Clear { cause: (), interrupt: false, service: None };
        recorder.handle(Instant::ORIGIN, clear, &mut |_| {}).expect("legal");
        let mut recorder = recorder.with_journal(JournalOptions::default());
        let (id, purpose) = (WaiterId(1), Purpose::Other);
        let ask = Input::CheckOutRequested { id, waiter: (), deadline: None, purpose };
        recorder.handle(Instant::ORIGIN, ask, &mut |_| {}).expect("legal");
        let trace = trace_of(&mut recorder);
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let mut told = Vec::new();
        let mut look = |action: Action<Traced>| {
            if let Action::Deliver { outcome: Err(CheckOutError::PoolCleared { cause }), .. } =
                action
            {
                told.push(cause.map(|cause| cause.to_string()));
            }
        };
        while replay.step(&mut look).expect("it goes the same way").is_some() {}
        assert_eq!(told, [Some("before this trace begins".into())]);
    }
}

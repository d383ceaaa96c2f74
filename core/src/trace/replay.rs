//! Replaying a trace, and comparing it with the recorded pool.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::{fmt, mem};
use std::io::Read;

use crate::pool::{Action, ActionSink, Input, Instant, Misuse, PoolState, WithoutEvents};

use super::action::ActionRecord;
use super::error::{ActionDifference, TraceError, TraceProblem};
use super::reader::{Reader, Record, TraceHeader};
use super::stage::StageRecord;
use super::traced::Traced;
use super::traced::restored;

/// One input of a trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// The offset of its document in the trace.
    pub byte: u64,
    /// When it happened. May be before the step before, if the clock ran backwards.
    pub at: Instant,
    /// The input.
    pub input: Input<Traced>,
    /// Whether the pool refused it; then it had no effect.
    pub refused: bool,
    /// How many inputs before this one were not recorded. The state of the pool is from after them.
    pub lost_before: Option<u64>,
    /// Where in the program a check-out was called, as in `src/orders.rs:41:32`, if that was recorded.
    pub place: Option<Arc<str>>,
    /// The stages to which establishments have come since the step before, if they were recorded.
    pub stages: Vec<StageRecord>,
    /// The step of the client that it follows from, if that was recorded: a number of the
    /// [topology's trace](super::topology::Step::client_step).
    pub follows: Option<u64>,
}

impl Step {
    /// A step of no file, for programs that hold the inputs of a trace and show them.
    pub const fn new(number: u64, at: Instant, input: Input<Traced>, refused: bool) -> Self {
        Self {
            number,
            byte: 0,
            at,
            input,
            refused,
            lost_before: None,
            place: None,
            stages: Vec::new(),
            follows: None,
        }
    }

    /// Sets [`place`](Self::place).
    #[must_use]
    pub fn with_place(self, place: Option<Arc<str>>) -> Self {
        Self { place, ..self }
    }
}

/// Replays a trace, step by step.
///
/// Reads from any source, buffered or not. Its memory depends on the size of the pool, not on the
/// length of the trace. Each recorded fingerprint and action is compared.
///
/// ```no_run
/// use cenote_core::trace::Replay;
///
/// let mut replay = Replay::new(std::fs::File::open("incident.bson")?)?;
/// while let Some(step) = replay.step(&mut |action| println!("{action:?}"))? {
///     println!("{} {} {}", step.number, step.at, replay.pool().snapshot());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replay<R> {
    reader: Reader<R>,
    header: TraceHeader,
    pool: PoolState<Traced>,
    /// The actions of the last step that were not compared yet, if the trace has actions.
    actions: Vec<ActionRecord>,
    compared: usize,
    /// Those since the last step.
    stages: Vec<StageRecord>,
    has_ended: bool,
}

/// The machine with the rules of a trace.
fn of_version(version: u64, mut pool: PoolState<Traced>) -> PoolState<Traced> {
    if version < 3 {
        pool.follow_old_rules();
    }
    pool
}

impl<R: Read> Replay<R> {
    /// Reads the beginning of a trace.
    ///
    /// # Errors
    ///
    /// When this is not a trace, or its beginning is invalid.
    pub fn new(source: R) -> Result<Self, TraceError> {
        Self::with_sink(source, &mut |_: Action<Traced>| {})
    }

    /// The same, and passes on the actions of creating the pool, if the trace begins with that.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_sink(source: R, out: &mut impl ActionSink<Traced>) -> Result<Self, TraceError> {
        let (reader, header, checkpoint) = Reader::new(source)?;
        let pool = match checkpoint {
            Some(checkpoint) => restored(&checkpoint).map_err(TraceProblem::State),
            None => PoolState::new(header.start, header.options.clone(), out)
                .map_err(TraceProblem::Options),
        };
        let pool = pool.map_err(|problem| reader.error(problem))?;
        let pool = of_version(header.version, pool);
        let (actions, stages) = (Vec::new(), Vec::new());
        Ok(Self { reader, header, pool, actions, compared: 0, stages, has_ended: false })
    }

    /// The header of the trace.
    pub const fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The pool after the last step.
    pub const fn pool(&self) -> &PoolState<Traced> {
        &self.pool
    }

    /// How many steps were taken.
    pub const fn steps(&self) -> u64 {
        self.reader.inputs()
    }

    /// The offset of the next document; at the end, the length of the trace.
    pub fn byte(&self) -> u64 {
        self.reader.byte()
    }

    /// Takes the next step and passes on its actions; `None` at the end of the trace.
    /// Fingerprints and actions are compared as they are read, before the step after them.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read any further, or the replay differs. The pool is then
    /// as it was after the last step.
    pub fn step(&mut self, out: &mut impl ActionSink<Traced>) -> Result<Option<Step>, TraceError> {
        let Some(step) = self.read_step()? else { return Ok(None) };
        self.take(step.at, step.input.clone(), step.refused, out)?;
        Ok(Some(step))
    }

    /// The next step, which is still to be taken.
    fn read_step(&mut self) -> Result<Option<Step>, TraceError> {
        let (mut lost_before, mut follows) = (None, None);
        loop {
            let record = if self.has_ended { None } else { self.reader.next()? };
            match record {
                Some(Record::Input { now, input, refused, place }) => {
                    self.expect_no_more_actions()?;
                    let number = self.steps();
                    let byte = self.reader.byte();
                    return Ok(Some(Step {
                        number,
                        byte,
                        at: now,
                        input,
                        refused,
                        lost_before,
                        place,
                        stages: mem::take(&mut self.stages),
                        follows,
                    }));
                }
                Some(Record::Fingerprint { fingerprint, inputs }) => {
                    self.count(inputs)?;
                    self.compare_fingerprint(fingerprint)?;
                }
                // More are no recording of a pool.
                Some(Record::Stage(stage)) if self.stages.len() < STAGES_MAX => {
                    self.stages.push(stage);
                }
                Some(Record::Stage(_)) => {}
                Some(Record::Follows(step)) => follows = Some(step),
                Some(Record::Actions(actions)) => self.compare_actions(&actions)?,
                Some(Record::Restart { lost, checkpoint }) => {
                    // The rest of the last step's actions may be among what was not recorded.
                    self.actions.clear();
                    self.compared = 0;
                    // What stands before the gap is about an input that is not there.
                    follows = None;
                    self.stages.clear();
                    let pool = restored(&checkpoint).map_err(TraceProblem::State);
                    let pool = pool.map_err(|problem| self.reader.error(problem))?;
                    self.pool = of_version(self.header.version, pool);
                    lost_before = Some(lost);
                }
                Some(Record::End { inputs }) => {
                    self.count(inputs)?;
                    self.expect_no_more_actions()?;
                }
                None => {
                    self.has_ended = true;
                    return Ok(None);
                }
            }
        }
    }

    /// The stages to which establishments have come since the last step.
    pub fn later_stages(&self) -> &[StageRecord] {
        &self.stages
    }

    /// Takes all remaining steps without a sink, and returns how many there were in all.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn verify(&mut self) -> Result<u64, TraceError> {
        let mut ignore = |_: Action<Traced>| {};
        while let Some(Step { at, input, refused, .. }) = self.read_step()? {
            self.take(at, input, refused, &mut WithoutEvents(&mut ignore))?;
        }
        Ok(self.steps())
    }

    fn take(
        &mut self,
        at: Instant,
        input: Input<Traced>,
        refused: bool,
        out: &mut impl ActionSink<Traced>,
    ) -> Result<(), TraceError> {
        let name = input.name();
        self.actions.clear();
        self.compared = 0;
        let outcome = if self.header.has_actions {
            let actions = &mut self.actions;
            self.pool.handle(at, input, &mut Listening { out, actions })
        } else {
            self.pool.handle(at, input, out)
        };
        match outcome {
            Ok(()) if refused => Err(self.reader.error(TraceProblem::NotRefused { input: name })),
            Err(Misuse { reason, .. }) if !refused => {
                Err(self.reader.error(TraceProblem::Refused { input: name, reason }))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn count(&self, said: u64) -> Result<(), TraceError> {
        let counted = self.steps();
        if said == counted {
            return Ok(());
        }
        Err(self.reader.error(TraceProblem::Missing { said, counted }))
    }

    fn compare_fingerprint(&self, recorded: u64) -> Result<(), TraceError> {
        let got = self.pool.fingerprint();
        if got == recorded {
            return Ok(());
        }
        Err(self.reader.error(TraceProblem::Fingerprint { recorded, got }))
    }

    fn compare_actions(&mut self, recorded: &[ActionRecord]) -> Result<(), TraceError> {
        for &recorded in recorded {
            let got = self.actions.get(self.compared).copied();
            self.compared += 1;
            if got != Some(recorded) {
                return Err(self.difference(Some(recorded), got));
            }
        }
        Ok(())
    }

    fn expect_no_more_actions(&mut self) -> Result<(), TraceError> {
        match self.actions.get(self.compared).copied() {
            None => Ok(()),
            Some(got) => {
                self.compared += 1;
                Err(self.difference(None, Some(got)))
            }
        }
    }

    fn difference(&self, recorded: Option<ActionRecord>, got: Option<ActionRecord>) -> TraceError {
        let difference = ActionDifference { index: self.compared, recorded, got };
        self.reader.error(TraceProblem::Actions(Box::new(difference)))
    }
}

/// How many stages a step can have.
const STAGES_MAX: usize = 1 << 16;

/// Passes every action on and records it.
struct Listening<'a, K> {
    out: &'a mut K,
    actions: &'a mut Vec<ActionRecord>,
}

impl<K: ActionSink<Traced>> ActionSink<Traced> for Listening<'_, K> {
    fn act(&mut self, action: Action<Traced>) {
        self.actions.extend(ActionRecord::of(&action));
        self.out.act(action);
    }

    fn wants_events(&self) -> bool {
        self.out.wants_events()
    }
}

impl<R> fmt::Debug for Replay<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("header", &self.header).field("pool", &self.pool).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{NoPayload, PoolOptions};
    use crate::trace::action::ActionName;
    use crate::trace::recorder::tests::trace_of;
    use crate::trace::{JournalOptions, Recorder};

    /// Of a pool with options that are as long as they can be, which became ready.
    fn trace() -> Vec<u8> {
        let options = PoolOptions::default().with_max_idle_time(core::time::Duration::MAX);
        let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, options, &mut |_| {});
        let mut recorder =
            Recorder::new(pool.expect("options")).with_journal(JournalOptions::default());
        recorder.handle(Instant::ORIGIN, Input::Ready, &mut |_| {}).expect("legal");
        trace_of(&mut recorder)
    }

    #[test]
    fn an_action_too_many_is_told_by_its_number() {
        let trace = trace();
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let one = ActionRecord {
            name: ActionName::Interrupt,
            connection: None,
            nanos: None,
            detail: None,
        };
        replay.actions.extend([one, one]);
        replay.compare_actions(&[one]).expect("the first is as it was");
        let error = replay.expect_no_more_actions().expect_err("there is a second");
        assert!(error.to_string().contains("action 2 is "), "{error}");
    }

    #[test]
    fn a_step_says_where_it_begins() {
        let trace = trace();
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let step = replay.step(&mut |_| {}).expect("no problem").expect("ready");
        assert_eq!(replay.byte(), step.byte);
        let place = usize::try_from(step.byte).expect("a short trace");
        let length: [u8; 4] = trace[place..place + 4].try_into().expect("there is a document");
        let length = usize::try_from(i32::from_le_bytes(length)).expect("a length");
        let document = bson::RawDocument::from_bytes(&trace[place..place + length]);
        assert!(document.is_ok_and(|it| it.get("ready").is_ok_and(|ready| ready.is_some())));
    }

    #[test]
    fn the_longest_time_there_is_comes_back() {
        let replay = Replay::new(trace().as_slice()).map(|it| it.pool().options().max_idle_time);
        assert_eq!(replay.ok().flatten(), Some(core::time::Duration::MAX));
    }
}

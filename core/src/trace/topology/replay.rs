//! Replaying the trace of a topology, and comparing what follows with what was recorded.

use core::fmt;
use std::io::Read;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::connect::ConnectionDescription;
use crate::monitor::ServerDescription;
use crate::pool::Instant;
use crate::topology::{Action, ActionSink, Input, Topology};
use crate::trace::{ActionDifference, TraceError, TraceProblem};

use super::action::ActionRecord;
use super::chunk::{Recorded, Start};
use super::reader::{Reader, Record, TraceHeader};
use super::selection::SelectionRecord;

/// One input of a trace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step {
    /// Its number in the trace, from 1.
    pub number: u64,
    /// Its number among all of the client's, also before the recording: what a step of a pool
    /// [follows](crate::trace::Step::follows).
    pub client_step: u64,
    /// The offset of its document in the trace.
    pub byte: u64,
    /// When it happened. May be before the step before: the monitors of two servers read the clock on their own.
    pub at: Instant,
    /// What happened.
    pub input: StepInput,
    /// Where the server is that the input describes; `None` if it describes none, or one that was removed before.
    pub server: Option<Arc<ServerAddress>>,
    /// How many inputs before this one were not recorded. The state is from after them.
    pub lost_before: Option<u64>,
}

/// What a step of a trace is.
#[derive(Clone, Debug)]
pub enum StepInput {
    /// An input of the topology.
    Topology(Input),
    /// A request for a server has ended that had to wait.
    Selection(SelectionRecord),
}

impl StepInput {
    /// The name: that of the input, or `Selection`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Topology(input) => input.name(),
            Self::Selection(_) => "Selection",
        }
    }
}

/// Replays the trace of a topology, step by step.
///
/// Reads from any source, buffered or not. Its memory depends on the size of the topology, not on the length of the
/// trace. The recorded actions of each step are compared.
pub struct Replay<R> {
    reader: Reader<R>,
    header: TraceHeader,
    topology: Topology,
    /// The actions of the last step, and those that were recorded of it, until they are compared.
    actions: Vec<ActionRecord>,
    recorded: Vec<ActionRecord>,
    /// The number and the offset of the last step.
    last: (u64, u64),
    /// From a number in the trace to that among all.
    before: u64,
    has_ended: bool,
}

impl<R: Read> Replay<R> {
    /// Reads the beginning of a trace.
    ///
    /// # Errors
    ///
    /// When this is not a trace of a topology, or its beginning is invalid.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let (reader, header, topology) = Reader::new(source)?;
        let (actions, recorded) = (Vec::new(), Vec::new());
        let (last, before, has_ended) = ((0, 0), header.steps_before, false);
        Ok(Self { reader, header, topology, actions, recorded, last, before, has_ended })
    }

    /// The header of the trace.
    pub const fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The topology after the last step.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// How many steps were taken.
    pub const fn steps(&self) -> u64 {
        self.last.0
    }

    /// Takes the next step and passes on its actions; `None` at the end of the trace. The actions of a step are
    /// compared before the step after it.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read any further, or the replay differs. The topology is then as it was after the last
    /// step.
    pub fn step(&mut self, out: &mut impl ActionSink) -> Result<Option<Step>, TraceError> {
        let mut lost_before = None;
        loop {
            let record = if self.has_ended { None } else { self.reader.next()? };
            match record {
                Some(Record::Input { now: at, input }) => {
                    self.compare()?;
                    let (number, byte) = (self.reader.inputs(), self.reader.byte());
                    self.last = (number, byte);
                    let input = self.input(input);
                    let mut server = None;
                    if let StepInput::Topology(input) = &input {
                        if let Input::Described { id, .. } = input {
                            server = self.topology.address(*id).cloned();
                        }
                        self.take(input.clone(), out);
                    }
                    let client_step = number.wrapping_add(self.before);
                    return Ok(Some(Step {
                        number,
                        client_step,
                        byte,
                        at,
                        input,
                        server,
                        lost_before,
                    }));
                }
                Some(Record::Actions(actions)) => {
                    self.recorded.extend(actions);
                    if self.recorded.len() > self.actions.len() {
                        self.compare()?;
                    }
                }
                Some(Record::Restart(Start { topology, steps, lost, .. })) => {
                    self.compare()?;
                    self.before = steps.wrapping_sub(self.reader.inputs());
                    self.topology = topology;
                    lost_before = Some(lost);
                }
                Some(Record::End { inputs: said }) => {
                    self.compare()?;
                    let counted = self.reader.inputs();
                    if said != counted {
                        return Err(self.reader.error(TraceProblem::Missing { said, counted }));
                    }
                }
                None => {
                    self.has_ended = true;
                    return Ok(None);
                }
            }
        }
    }

    /// Takes all remaining steps without a sink, and returns how many there were in all.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn verify(&mut self) -> Result<u64, TraceError> {
        while self.step(&mut |_| {})?.is_some() {}
        Ok(self.steps())
    }

    /// What said the same as what was known is completed with that.
    fn input(&self, input: Recorded) -> StepInput {
        StepInput::Topology(match input {
            Recorded::Described { id, description } => Input::Described { id, description },
            Recorded::Same { id, round_trip, last_write_ms, updated } => {
                let address = self.topology.address(id);
                let known = address.and_then(|it| self.topology.description().server(it));
                let known = known.map(|known| (**known).clone()).unwrap_or_default();
                let hello = known.hello.as_deref().map(|hello| {
                    Arc::new(ConnectionDescription { last_write_ms, ..hello.clone() })
                });
                let description = ServerDescription { hello, round_trip, updated, ..known };
                Input::Described { id, description: Arc::new(description) }
            }
            Recorded::Hosts { hosts } => Input::Hosts { hosts },
            Recorded::Close => Input::Close,
            Recorded::Selection(selection) => return StepInput::Selection(selection),
        })
    }

    fn take(&mut self, input: Input, out: &mut impl ActionSink) {
        let Self { topology, actions, .. } = self;
        topology.handle(input, &mut |action: Action| {
            actions.push(ActionRecord::of(&action));
            out.act(action);
        });
    }

    /// Compares the actions of the last step with those that were recorded.
    fn compare(&mut self) -> Result<(), TraceError> {
        let mut sides = [&mut self.recorded, &mut self.actions].map(std::mem::take);
        if self.header.is_redacted {
            for side in &mut sides {
                side.retain(ActionRecord::changes_a_kind);
                side.sort_unstable();
            }
        }
        let [recorded, got] = sides;
        if recorded == got {
            return Ok(());
        }
        let same = recorded.iter().zip(&got).take_while(|(recorded, got)| recorded == got).count();
        let [recorded, got] = [recorded, got].map(|side| side.into_iter().nth(same));
        let difference = ActionDifference { index: same + 1, recorded, got };
        let (step, byte) = self.last;
        let problem = TraceProblem::TopologyActions(Box::new(difference));
        Err(TraceError { byte, step, problem })
    }
}

impl<R> fmt::Debug for Replay<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("header", &self.header)
            .field("topology", &self.topology)
            .finish_non_exhaustive()
    }
}

//! Reading the documents of a trace, one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use bson::RawBsonRef;

use crate::address::ServerAddress;
use crate::pool::Instant;
use crate::topology::{ServerId, Topology, TopologyDescription};
use crate::trace::cause_numbers::CAUSES_MAX;
use crate::trace::documents::Documents;
use crate::trace::fields::{Fields, Found, absent, shown, wrong};
use crate::trace::reader::{Origin, first, keep, known, origin, out_of_place, version};
use crate::trace::{Cause, TraceError, TraceProblem};

use super::action::ActionRecord;
use super::chunk::{Recorded, Start};
use super::{FORMAT, VERSION, decode};

/// The first document of a trace of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// Of the format.
    pub version: u64,
    /// The program that recorded, if it gave its name: one line of at most 256 characters.
    pub program: Option<String>,
    /// Milliseconds since 1970 at [`Instant::ORIGIN`].
    pub origin: i64,
    /// When it begins.
    pub start: Instant,
    /// Whether texts of errors or addresses are hashed or left out. Of the actions only those are compared then that
    /// change a type or a server, in any order.
    pub is_redacted: bool,
    /// How many steps there were before it: the trace of a flight recorder does not begin with the first.
    pub steps_before: u64,
}

/// The content of a document, or of several that belong together.
#[derive(Debug)]
pub(super) enum Record {
    Input { now: Instant, input: Recorded },
    Actions(Vec<ActionRecord>),
    Restart(Start),
    End { inputs: u64 },
}

/// Reads a trace from front to back.
pub(super) struct Reader<R> {
    documents: Documents<R>,
    /// Of the record that was read last.
    byte: u64,
    inputs: u64,
    now: Instant,
    causes: Vec<Option<Cause>>,
    has_ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header, and the state that follows it.
    pub(super) fn new(source: R) -> Result<(Self, TraceHeader, Topology), TraceError> {
        let documents = Documents::new(source);
        let (now, causes) = (Instant::ORIGIN, Vec::new());
        let mut reader = Self { documents, byte: 0, inputs: 0, now, causes, has_ended: false };
        let (header, topology) = reader.begin().map_err(|problem| reader.error(problem))?;
        Ok((reader, header, topology))
    }

    /// The next record; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Record>, TraceError> {
        self.read().map_err(|problem| self.error(problem))
    }

    /// Where the last record begins.
    pub(super) const fn byte(&self) -> u64 {
        self.byte
    }

    /// How many inputs were read.
    pub(super) const fn inputs(&self) -> u64 {
        self.inputs
    }

    /// A problem with the record that was read last.
    pub(super) const fn error(&self, problem: TraceProblem) -> TraceError {
        TraceError { byte: self.byte, step: self.inputs, problem }
    }

    fn begin(&mut self) -> Found<(TraceHeader, Topology)> {
        let fields = first(&mut self.documents)?;
        let version = version(&fields, FORMAT, VERSION)?;
        let Origin { program, milliseconds: origin } = origin(&fields)?;
        let is_redacted = fields.flag("redacted")?;
        let state = State::read(&fields)?;
        drop(fields);
        let (start, steps_before) = (state.now, state.steps);
        let header = TraceHeader { version, program, origin, start, is_redacted, steps_before };
        Ok((header, self.state(state)?))
    }

    fn read(&mut self) -> Found<Option<Record>> {
        loop {
            self.byte = self.documents.offset();
            let Some(document) = self.documents.next()? else {
                return if self.has_ended { Ok(None) } else { Err(TraceProblem::NoEnd) };
            };
            if self.has_ended {
                return Err(TraceProblem::AfterTheEnd);
            }
            let fields = Fields::of(document)?;
            match fields.key(0) {
                Some(b"t") => {
                    let (now, input) = input(&fields, &self.causes, self.now)?;
                    self.now = now;
                    self.inputs += 1;
                    return Ok(Some(Record::Input { now, input }));
                }
                Some(b"cause") => cause(&fields, &mut self.causes)?,
                Some(b"acts") => return actions(&fields).map(|all| Some(Record::Actions(all))),
                Some(b"lost") => {
                    let (now, lost) = (fields.time("t")?, fields.number("lost")?);
                    let state = State::read(&fields)?;
                    drop(fields);
                    let steps = state.steps;
                    let topology = self.state(state)?;
                    return Ok(Some(Record::Restart(Start { now, topology, steps, lost })));
                }
                Some(b"end") => {
                    self.has_ended = true;
                    return Ok(Some(Record::End { inputs: fields.number("end")? }));
                }
                Some(b"format" | b"known" | b"excluded") => return Err(out_of_place(&fields)),
                Some(other) => {
                    return Err(TraceProblem::UnknownDocument { key: shown(other) });
                }
                None => return Err(absent("t, acts or the like")),
            }
        }
    }

    /// The topology of a state, whose servers are in the documents that follow.
    fn state(&mut self, state: State) -> Found<Topology> {
        let State {
            now,
            mut description,
            last_id,
            seeds,
            is_closed,
            steps: _,
            mut servers,
            mut excluded,
        } = state;
        let mut ids = BTreeMap::new();
        self.now = now;
        while servers + excluded > 0 {
            self.byte = self.documents.offset();
            let document = self.documents.next()?.ok_or(TraceProblem::NoEnd)?;
            let fields = Fields::of(document)?;
            match fields.key(0) {
                Some(b"cause") => cause(&fields, &mut self.causes)?,
                Some(b"known") if servers > 0 => {
                    servers -= 1;
                    let cause = |number| known(&self.causes, number);
                    let server = decode::description(&fields, now, cause)?;
                    let address = decode::address(&fields, "known")?;
                    let id = ServerId(fields.number("id")?);
                    if id > last_id || ids.insert(id, Arc::clone(&address)).is_some() {
                        return Err(wrong("id", "is not that of one server up to `lastId`"));
                    }
                    description.servers.insert(address, Arc::new(server));
                }
                Some(b"excluded") if excluded > 0 => {
                    excluded -= 1;
                    let address = decode::address(&fields, "excluded")?;
                    let reason = known(&self.causes, fields.number("e")?);
                    let reason = reason.ok_or_else(|| wrong("e", decode::UNTOLD))?;
                    description.excluded.insert(address, decode::error(&reason));
                }
                _ => return Err(out_of_place(&fields)),
            }
        }
        Ok(Topology::resume(description, ids, last_id, seeds, is_closed))
    }
}

/// A state without its servers.
struct State {
    now: Instant,
    description: TopologyDescription,
    last_id: ServerId,
    seeds: BTreeSet<Arc<ServerAddress>>,
    is_closed: bool,
    steps: u64,
    servers: u64,
    excluded: u64,
}

impl State {
    fn read(fields: &Fields<'_>) -> Found<Self> {
        let seeds = decode::addresses_if(fields, "hosts")?.unwrap_or_default();
        Ok(Self {
            now: fields.time("t")?,
            description: TopologyDescription {
                kind: decode::topology_kind(fields, "kind")?,
                set_name: fields.text_if("set")?.map(ToOwned::to_owned),
                max_set_version: fields.signed_if("maxSetVersion")?,
                max_election_id: fields.object_id_if("maxElectionId")?,
                servers: BTreeMap::new(),
                excluded: BTreeMap::new(),
            },
            last_id: ServerId(fields.number("lastId")?),
            seeds: seeds.into_iter().map(Arc::new).collect(),
            is_closed: fields.flag("closed")?,
            steps: fields.number_if("steps")?.unwrap_or(0),
            servers: fields.number("servers")?,
            excluded: fields.number("excluded")?,
        })
    }
}

fn input(
    fields: &Fields<'_>,
    causes: &[Option<Cause>],
    before: Instant,
) -> Found<(Instant, Recorded)> {
    let now = fields.time("t")?;
    if now < before && !fields.flag("back")? {
        let (now, before) = (now.as_nanos(), before.as_nanos());
        return Err(TraceProblem::TimeOrder { now, before });
    }
    let input = match fields.key(1).ok_or_else(|| absent("server, same or the like"))? {
        b"server" => Recorded::Described {
            id: ServerId(fields.number("server")?),
            description: Arc::new(decode::description(fields, now, |e| known(causes, e))?),
        },
        b"same" => {
            let id = ServerId(fields.number("same")?);
            let (round_trip, updated) = decode::times(fields, now)?;
            let last_write_ms = fields.date_if("wrote")?;
            Recorded::Same { id, round_trip, last_write_ms, updated }
        }
        b"hosts" => {
            let hosts = decode::addresses_if(fields, "hosts")?.unwrap_or_default();
            Recorded::Hosts { hosts }
        }
        b"close" => Recorded::Close,
        b"select" => Recorded::Selection(decode::selection(fields)?),
        other => return Err(TraceProblem::Field { key: shown(other), problem: "is no input" }),
    };
    Ok((now, input))
}

fn cause(fields: &Fields<'_>, causes: &mut Vec<Option<Cause>>) -> Found<()> {
    let (number, cause) = crate::trace::decode::cause(fields)?;
    keep(causes, ("cause", number, CAUSES_MAX), cause)
}

fn actions(fields: &Fields<'_>) -> Found<Vec<ActionRecord>> {
    let array = fields.array_if("acts")?.into_iter().flatten();
    let action = |element| match element {
        Ok(RawBsonRef::Document(document)) => decode::action(&Fields::of(document)?),
        _ => Err(wrong("acts", "holds something that is not a document")),
    };
    array.map(action).collect()
}

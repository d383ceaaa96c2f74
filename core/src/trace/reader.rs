//! Reading the documents of a trace, one after another.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::io::Read;

use bson::RawBsonRef;

use crate::error::{OneLine, Stage};
use crate::pool::{Input, Instant, PoolCheckpoint, PoolOptions};

use super::action::ActionRecord;
use super::cause::{Cause, stage_name};
use super::cause_numbers::CAUSES_MAX;
use super::decode;
use super::documents::Documents;
use super::error::{TraceError, TraceProblem};
use super::fields::{Fields, Found, absent, shown, wrong};
use super::stage::StageRecord;
use super::traced::Traced;
use super::writer::PLACES_MAX;
use super::{FORMAT, VERSION, topology};

/// The first document of a trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// Of the format.
    pub version: u64,
    /// The address of the server, or its hash, in one line; `None` if it was left out.
    pub address: Option<String>,
    /// The program that recorded, if it gave its name: one line of at most 256 characters.
    pub program: Option<String>,
    /// Milliseconds since 1970 at [`Instant::ORIGIN`].
    pub origin: i64,
    /// The options with which it begins.
    pub options: PoolOptions,
    /// When it begins.
    pub start: Instant,
    /// Whether it begins with the pool itself; otherwise with a state in which the pool was.
    pub is_new: bool,
    /// Whether actions are recorded, too.
    pub has_actions: bool,
}

/// The content of a document, or of several that belong together.
#[derive(Debug)]
pub(super) enum Record {
    Input { now: Instant, input: Input<Traced>, refused: bool, place: Option<Arc<str>> },
    Fingerprint { fingerprint: u64, inputs: u64 },
    Actions(Vec<ActionRecord>),
    Stage(StageRecord),
    Follows(u64),
    Restart { lost: u64, checkpoint: Box<PoolCheckpoint> },
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
    places: Vec<Option<Arc<str>>>,
    has_ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header, and the state that follows it, if there is one.
    pub(super) fn new(
        source: R,
    ) -> Result<(Self, TraceHeader, Option<PoolCheckpoint>), TraceError> {
        let documents = Documents::new(source);
        let mut reader = Self {
            documents,
            byte: 0,
            inputs: 0,
            now: Instant::ORIGIN,
            causes: Vec::new(),
            places: Vec::new(),
            has_ended: false,
        };
        let (header, checkpoint) = reader.begin().map_err(|problem| reader.error(problem))?;
        Ok((reader, header, checkpoint))
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

    fn begin(&mut self) -> Found<(TraceHeader, Option<PoolCheckpoint>)> {
        let fields = first(&mut self.documents)?;
        let (header, checkpoint, parts) = header(&fields)?;
        drop(fields);
        self.now = header.start;
        match parts {
            None => Ok((header, None)),
            Some(parts) => Ok((header, Some(self.parts(checkpoint, parts)?))),
        }
    }

    fn parts(
        &mut self,
        mut checkpoint: PoolCheckpoint,
        parts: decode::Parts,
    ) -> Found<PoolCheckpoint> {
        for _ in 0..parts.total() {
            self.byte = self.documents.offset();
            let document = self.documents.next()?.ok_or(TraceProblem::NoEnd)?;
            let fields = Fields::of(document)?;
            if decode::part(&fields, &mut checkpoint)?.is_none() {
                return Err(out_of_place(&fields));
            }
        }
        Ok(checkpoint)
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
                    let (now, record) = input(&fields, &self.causes, &self.places, self.now)?;
                    self.now = now;
                    self.inputs += 1;
                    return Ok(Some(record));
                }
                Some(b"cause") => {
                    let (number, cause) = decode::cause(&fields)?;
                    keep(&mut self.causes, ("cause", number, CAUSES_MAX), cause)?;
                }
                Some(b"place") => {
                    let text = fields.text_if("text")?.ok_or_else(|| absent("text"))?;
                    let text = OneLine::text(text).to_string().into();
                    let number = fields.number("place")?;
                    keep(&mut self.places, ("place", number, PLACES_MAX), text)?;
                }
                Some(b"fp") => {
                    let fingerprint = fields.number("fp")?;
                    return Ok(Some(Record::Fingerprint {
                        fingerprint,
                        inputs: fields.number("n")?,
                    }));
                }
                Some(b"stage") => {
                    let stage = fields.choice_if("stage", &Stage::ALL, stage_name)?;
                    let stage = stage.ok_or_else(|| absent("stage"))?;
                    let (at, connection) = (fields.time("t")?, fields.number("c")?);
                    let failed = fields.number_if("failed")?;
                    return Ok(Some(Record::Stage(StageRecord { at, connection, stage, failed })));
                }
                Some(b"follows") => return Ok(Some(Record::Follows(fields.number("follows")?))),
                Some(b"acts") => return actions(&fields).map(|all| Some(Record::Actions(all))),
                Some(b"lost") => {
                    let lost = fields.number("lost")?;
                    let (checkpoint, parts) = start(&fields)?;
                    let parts = parts.ok_or_else(|| absent("state"))?;
                    drop(fields);
                    self.now = checkpoint.now;
                    let checkpoint = Box::new(self.parts(checkpoint, parts)?);
                    return Ok(Some(Record::Restart { lost, checkpoint }));
                }
                Some(b"end") => {
                    self.has_ended = true;
                    return Ok(Some(Record::End { inputs: fields.number("end")? }));
                }
                Some(b"format" | b"service" | b"connection" | b"free" | b"request") => {
                    return Err(out_of_place(&fields));
                }
                Some(other) => {
                    return Err(TraceProblem::UnknownDocument { key: shown(other) });
                }
                None => return Err(absent("t, fp or the like")),
            }
        }
    }
}

/// The first document of a trace of any format.
pub(super) fn first<R: Read>(documents: &mut Documents<R>) -> Found<Fields<'_>> {
    let no_bson = || {
        let found = "the first document is not BSON".to_owned();
        TraceProblem::NotATrace { found }
    };
    let document = match documents.next() {
        Ok(Some(document)) => document,
        Ok(None) => return Err(TraceProblem::Empty),
        Err(TraceProblem::Length { got, .. }) => {
            let found = alloc::format!("the first four bytes would be a length of {got}");
            return Err(TraceProblem::NotATrace { found });
        }
        Err(TraceProblem::Bson { .. }) => return Err(no_bson()),
        Err(problem) => return Err(problem),
    };
    Fields::of(document).map_err(|_| no_bson())
}

/// The version of a trace of this format, which has to be the known one.
pub(super) fn version(fields: &Fields<'_>, format: &'static str, known: u64) -> Found<u64> {
    let got = fields.get("format").and_then(RawBsonRef::as_str);
    if got != Some(format) {
        let other = [FORMAT, topology::FORMAT].into_iter().find(|other| got == Some(*other));
        return Err(match other {
            Some(got) => TraceProblem::OtherFormat { got, expected: format },
            None => {
                let key = shown(fields.key(0).unwrap_or_default());
                let found = alloc::format!("the first document begins with `{key}`");
                TraceProblem::NotATrace { found }
            }
        });
    }
    let version = fields.number("version")?;
    if !(1..=known).contains(&version) {
        return Err(TraceProblem::Version { got: version, known });
    }
    Ok(version)
}

/// What recorded a trace of any format, and when that was at its origin.
pub(super) struct Origin {
    pub(super) program: Option<String>,
    pub(super) milliseconds: i64,
}

pub(super) fn origin(fields: &Fields<'_>) -> Found<Origin> {
    Ok(Origin {
        program: fields.text_if("program")?.map(|text| OneLine::name(text).to_string()),
        milliseconds: fields.date_if("origin")?.ok_or_else(|| wrong("origin", "is not a date"))?,
    })
}

type Begun = (TraceHeader, PoolCheckpoint, Option<decode::Parts>);

fn header(fields: &Fields<'_>) -> Found<Begun> {
    let version = version(fields, FORMAT, VERSION)?;
    let (checkpoint, parts) = start(fields)?;
    let Origin { program, milliseconds: origin } = origin(fields)?;
    let header = TraceHeader {
        version,
        address: fields.text_if("address")?.map(|text| OneLine::text(text).to_string()),
        program,
        origin,
        options: checkpoint.options.clone(),
        start: checkpoint.now,
        is_new: parts.is_none(),
        has_actions: fields.flag("actions")?,
    };
    Ok((header, checkpoint, parts))
}

/// The options and the time at which a trace begins, or begins again, and the counts of the state.
fn start(fields: &Fields<'_>) -> Found<(PoolCheckpoint, Option<decode::Parts>)> {
    let nested = fields.document_if("options")?.ok_or_else(|| absent("options"))?;
    let options = decode::options(&nested)?;
    options.validate().map_err(TraceProblem::Options)?;
    let mut checkpoint =
        PoolCheckpoint { options, now: fields.time("t")?, ..PoolCheckpoint::default() };
    let parts = match fields.document_if("state")? {
        Some(state) => Some(decode::state(&state, &mut checkpoint)?),
        None => None,
    };
    Ok((checkpoint, parts))
}

fn input(
    fields: &Fields<'_>,
    causes: &[Option<Cause>],
    places: &[Option<Arc<str>>],
    before: Instant,
) -> Found<(Instant, Record)> {
    let now = fields.time("t")?;
    if now < before && !fields.flag("back")? {
        let (now, before) = (now.as_nanos(), before.as_nanos());
        return Err(TraceProblem::TimeOrder { now, before });
    }
    let input = decode::input(fields, |number| known(causes, number))?;
    let place = match (&input, fields.number_if("at")?) {
        (Input::CheckOutRequested { .. }, Some(number)) => {
            let place = known(places, number);
            Some(place.ok_or_else(|| wrong("at", "names a place that was not told"))?)
        }
        _ => None,
    };
    Ok((now, Record::Input { now, input, refused: fields.flag("refused")?, place }))
}

pub(super) fn known<T: Clone>(all: &[Option<T>], number: u64) -> Option<T> {
    all.get(usize::try_from(number).ok()?)?.clone()
}

/// Keeps the content of the document that begins with this key and number, which has to be below the limit.
pub(super) fn keep<T: Clone>(
    all: &mut Vec<Option<T>>,
    (key, number, limit): (&str, u64, u64),
    content: T,
) -> Found<()> {
    if number >= limit {
        return Err(wrong(key, "is above the highest number that it can be"));
    }
    let index = number as usize;
    if all.len() <= index {
        all.resize(index + 1, None);
    }
    if let Some(kept) = all.get_mut(index) {
        *kept = Some(content);
    }
    Ok(())
}

fn actions(fields: &Fields<'_>) -> Found<Vec<ActionRecord>> {
    let Some(RawBsonRef::Array(array)) = fields.get("acts") else {
        return Err(wrong("acts", "is not an array"));
    };
    let mut actions = Vec::new();
    for element in array {
        let Ok(RawBsonRef::Document(document)) = element else {
            return Err(wrong("acts", "holds something that is not a document"));
        };
        actions.push(decode::action(&Fields::of(document)?)?);
    }
    Ok(actions)
}

pub(super) fn out_of_place(fields: &Fields<'_>) -> TraceProblem {
    TraceProblem::OutOfPlace { key: shown(fields.key(0).unwrap_or_default()) }
}

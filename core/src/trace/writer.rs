//! From chunks to a file of documents.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use std::io;

use crate::pool::{Input, Instant, PoolCheckpoint};

use super::action::ActionRecord;
use super::cause::{Disclosure, stage_name};
use super::cause_numbers::CauseNumbers;
use super::chunk::{Chunk, Start};
use super::document::Document;
use super::document_sink::{DocumentSink, missing_chunk};
use super::encode;
use super::input_log_entries::Entry;
use super::stage::StageRecord;
use super::traced::Traced;
use super::{FORMAT, VERSION};

/// What the header of a trace says about the pool and the program.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TraceInfo {
    /// The address of the server, `host:port`; empty when it is to stay out of the trace.
    pub address: String,
    /// The program that recorded, as in `cenote-tokio 0.1.0`.
    pub program: String,
    /// Milliseconds since 1970 at [`Instant::ORIGIN`].
    pub origin: i64,
    /// How the texts of causes and the places of check-outs are written.
    pub texts: Disclosure,
    /// How the address is written.
    pub addresses: Disclosure,
}

impl TraceInfo {
    /// About a pool for this address.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), ..Self::default() }
    }

    /// Sets [`program`](Self::program).
    #[must_use]
    pub fn with_program(self, program: impl Into<String>) -> Self {
        Self { program: program.into(), ..self }
    }

    /// Sets [`origin`](Self::origin).
    #[must_use]
    pub fn with_origin(self, origin: i64) -> Self {
        Self { origin, ..self }
    }

    /// Sets [`texts`](Self::texts).
    #[must_use]
    pub fn with_texts(self, texts: Disclosure) -> Self {
        Self { texts, ..self }
    }

    /// Sets [`addresses`](Self::addresses).
    #[must_use]
    pub fn with_addresses(self, addresses: Disclosure) -> Self {
        Self { addresses, ..self }
    }
}

/// Writes a trace: chunks in the order in which they were taken, then the end.
///
/// It buffers 64 KiB, so the sink need not. Blocks as long as the sink does; not to be called under
/// a pool's lock.
pub struct TraceWriter<W> {
    out: DocumentSink<W>,
    info: TraceInfo,
    begun: bool,
    inputs: u64,
    /// Of the last input, to tell when it ran backwards.
    now: Instant,
    /// Whether actions are written, and those of the last input.
    has_actions: bool,
    actions: Vec<ActionRecord>,
    causes: CauseNumbers,
    places: BTreeMap<String, u64>,
}

impl<W: io::Write> TraceWriter<W> {
    /// Writes nothing before the first chunk.
    pub fn new(sink: W, info: TraceInfo) -> Self {
        Self {
            out: DocumentSink::new(sink),
            info,
            begun: false,
            inputs: 0,
            now: Instant::ORIGIN,
            has_actions: false,
            actions: Vec::new(),
            causes: CauseNumbers::default(),
            places: BTreeMap::new(),
        }
    }

    /// Writes a chunk. The first one has the state in which the trace begins.
    ///
    /// # Errors
    ///
    /// Those of the sink; and [`io::ErrorKind::InvalidInput`] when the first chunk is the
    /// continuation of another.
    pub fn write(&mut self, chunk: &Chunk) -> io::Result<()> {
        match &chunk.start {
            Some(start) => {
                self.has_actions = chunk.log.has_actions;
                self.start(start)?;
            }
            None if self.begun => {}
            None => return Err(missing_chunk()),
        }
        self.go_on(chunk)
    }

    /// What is in a chunk, which begins where the one before it ended.
    pub(super) fn go_on(&mut self, chunk: &Chunk) -> io::Result<()> {
        let places = chunk.log.places.iter();
        let places: Vec<_> = places.map(|place| self.place(&place.to_string())).collect();
        let place_of = |number: u64| *places.get((number as usize).checked_sub(1)?)?;
        let mut place = place_of(u64::from(chunk.log.start.place.is_some()));
        for entry in chunk.log.entries() {
            match entry {
                Entry::Input { now, input, refused } => {
                    self.write_input(now, &input, refused, place)?;
                }
                Entry::Place(number) => place = place_of(number),
                Entry::Fingerprint(fingerprint) => self.fingerprint(fingerprint)?,
                Entry::Action(action) => self.actions.push(action),
                Entry::Stage(stage) => self.stage(stage)?,
                Entry::Follows(step) => self.follow(step)?,
            }
        }
        Ok(())
    }

    /// Writes an input, without any recorder: for programs that make traces.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn input(&mut self, now: Instant, input: &Input<Traced>, refused: bool) -> io::Result<()> {
        self.write_input(now, input, refused, None)
    }

    /// As [`input`](Self::input), with where in the program a check-out is called, as in `src/orders.rs:41:32`.
    /// A trace has 1024 different places at most; others are left out.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn input_at(
        &mut self,
        place: &str,
        now: Instant,
        input: &Input<Traced>,
        refused: bool,
    ) -> io::Result<()> {
        let place = self.place(place);
        self.write_input(now, input, refused, place)
    }

    fn write_input(
        &mut self,
        now: Instant,
        input: &Input<Traced>,
        refused: bool,
        place: Option<u64>,
    ) -> io::Result<()> {
        self.flush_actions();
        let (texts, buffer) = (self.info.texts, &mut self.out.buffer);
        let cause = encode::cause_of(input).map(|cause| self.causes.number(cause, texts, buffer));
        let backwards = now < self.now;
        self.now = now;
        self.inputs += 1;
        let mut document = Document::new(&mut self.out.buffer);
        document.long("t", now.as_nanos() as i64);
        encode::input(&mut document, input, cause, place);
        document.flag("back", backwards).flag("refused", refused);
        document.end();
        self.out.pass_on()
    }

    fn stage(&mut self, record: StageRecord) -> io::Result<()> {
        let StageRecord { at, connection, stage, failed } = record;
        self.flush_actions();
        self.document(|document| {
            document.text("stage", stage_name(stage)).number("c", connection);
            document.long("t", at.as_nanos() as i64);
            if let Some(step) = failed {
                document.number("failed", step);
            }
        })
    }

    /// Writes which step of the client the next input follows, without any recorder.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn follow(&mut self, step: u64) -> io::Result<()> {
        self.flush_actions();
        self.document(|document| {
            document.number("follows", step);
        })
    }

    /// Begins a trace with a checkpoint, without any recorder. A second call continues from another
    /// checkpoint, after `lost` inputs that are not in the trace.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn begin(&mut self, checkpoint: &PoolCheckpoint, lost: u64) -> io::Result<()> {
        self.start(&Start { checkpoint: checkpoint.clone(), lost })
    }

    /// Writes the fingerprint of the state after the last input.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn fingerprint(&mut self, fingerprint: u64) -> io::Result<()> {
        self.flush_actions();
        let mut document = Document::new(&mut self.out.buffer);
        document.long("fp", fingerprint as i64).number("n", self.inputs);
        document.end();
        self.out.pass_on()
    }

    /// The sink: to take from memory what was written so far, after a [`flush`](Self::flush).
    pub const fn sink_mut(&mut self) -> &mut W {
        &mut self.out.sink
    }

    /// Writes the buffer to the sink and flushes that.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_actions();
        self.out.flush()
    }

    /// Writes the end, without which a trace counts as truncated, and returns the sink.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_actions();
        let mut document = Document::new(&mut self.out.buffer);
        document.number("end", self.inputs);
        document.end();
        self.flush()?;
        Ok(self.out.sink)
    }

    fn start(&mut self, start: &Start) -> io::Result<()> {
        self.flush_actions();
        let checkpoint = &start.checkpoint;
        self.now = checkpoint.now;
        let mut document = Document::new(&mut self.out.buffer);
        if self.begun {
            document.number("lost", start.lost);
        } else {
            header(&mut document, FORMAT, VERSION, &self.info);
            document.flag("actions", self.has_actions);
        }
        document.long("t", checkpoint.now.as_nanos() as i64);
        document.document("options", |nested| encode::options(nested, &checkpoint.options));
        let state = !is_new(checkpoint) || self.begun;
        if state {
            document.document("state", |nested| encode::state(nested, checkpoint));
        }
        document.end();
        self.begun = true;
        if state { self.parts(checkpoint) } else { Ok(()) }
    }

    fn parts(&mut self, checkpoint: &PoolCheckpoint) -> io::Result<()> {
        for service in &checkpoint.services {
            self.document(|document| encode::service(document, service))?;
        }
        for connection in &checkpoint.connections {
            self.document(|document| encode::connection_checkpoint(document, connection))?;
        }
        for &slot in &checkpoint.free_slots {
            self.document(|document| {
                document.number("free", slot.into());
            })?;
        }
        for request in &checkpoint.requests {
            self.document(|document| encode::request(document, request))?;
        }
        Ok(())
    }

    fn document(&mut self, write: impl FnOnce(&mut Document<'_>)) -> io::Result<()> {
        let mut document = Document::new(&mut self.out.buffer);
        write(&mut document);
        document.end();
        self.out.pass_on()
    }

    /// The number of a place, which is written first if it is new; `None` if there are too many.
    fn place(&mut self, place: &str) -> Option<u64> {
        if let Some(&number) = self.places.get(place) {
            return Some(number);
        }
        let text = self.info.texts.apply(place)?;
        let number = Some(self.places.len() as u64).filter(|&number| number < PLACES_MAX)?;
        self.places.insert(place.into(), number);
        self.flush_actions();
        let mut document = Document::new(&mut self.out.buffer);
        document.number("place", number).text("text", &text);
        document.end();
        Some(number)
    }

    /// Writes the actions of the last input.
    fn flush_actions(&mut self) {
        for actions in self.actions.chunks(ACTIONS_MAX) {
            let mut document = Document::new(&mut self.out.buffer);
            document.array("acts", |array| {
                for (index, action) in actions.iter().enumerate() {
                    let key = alloc::format!("{index}");
                    array.document(&key, |nested| encode::action(nested, action));
                }
            });
            document.end();
        }
        self.actions.clear();
    }
}

/// The beginning of the first document.
pub(super) fn header(document: &mut Document<'_>, format: &str, version: u64, info: &TraceInfo) {
    document.text("format", format).number("version", version);
    let address = Some(info.address.as_str()).filter(|address| !address.is_empty());
    if let Some(address) = address.and_then(|address| info.addresses.apply(address)) {
        document.text("address", &address);
    }
    if !info.program.is_empty() {
        document.text("program", &info.program);
    }
    document.date("origin", info.origin);
}

/// Whether nothing has happened yet, so that the trace begins with the pool.
fn is_new(checkpoint: &PoolCheckpoint) -> bool {
    let (options, now) = (checkpoint.options.clone(), checkpoint.now);
    *checkpoint == PoolCheckpoint { options, now, ..PoolCheckpoint::default() }
}

impl<W> fmt::Debug for TraceWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceWriter({} inputs)", self.inputs)
    }
}

/// Actions in one document.
const ACTIONS_MAX: usize = 1000;
/// Places in a trace.
pub(super) const PLACES_MAX: u64 = 1024;

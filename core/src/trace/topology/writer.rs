//! From chunks to a file of documents.

use core::fmt;
use std::io;

use crate::error::ConnectionError;
use crate::monitor::ServerDescription;
use crate::pool::Instant;
use crate::topology::ServerId;
use crate::trace::cause_numbers::CauseNumbers;
use crate::trace::document::Document;
use crate::trace::document_sink::{DocumentSink, missing_chunk};
use crate::trace::writer::header;
use crate::trace::{Cause, Disclosure, TraceCause as _, TraceInfo};

use super::action::ActionRecord;
use super::chunk::{Chunk, Entry, Recorded, Start};
use super::names::Names;
use super::{FORMAT, VERSION, encode};

/// Writes a trace of a topology: chunks in the order in which they were taken, then the end.
///
/// It buffers 64 KiB, so the sink need not. Blocks as long as the sink does; not to be called under the lock of the
/// topology. The address in its [`TraceInfo`] does not count, as a topology has none.
pub struct TraceWriter<W> {
    out: DocumentSink<W>,
    info: TraceInfo,
    begun: bool,
    inputs: u64,
    /// Of the last input, to tell when it ran backwards.
    now: Instant,
    causes: CauseNumbers,
    names: Names,
}

impl<W: io::Write> TraceWriter<W> {
    /// Writes nothing before the first chunk.
    pub fn new(sink: W, info: TraceInfo) -> Self {
        Self {
            out: DocumentSink::new(sink),
            names: Names::new(info.addresses),
            info: TraceInfo { address: String::new(), ..info },
            begun: false,
            inputs: 0,
            now: Instant::ORIGIN,
            causes: CauseNumbers::default(),
        }
    }

    /// Writes a chunk. The first one has the state in which the trace begins.
    ///
    /// # Errors
    ///
    /// Those of the sink; and [`io::ErrorKind::InvalidInput`] when the first chunk is the continuation of another.
    pub fn write(&mut self, chunk: &Chunk) -> io::Result<()> {
        match &chunk.start {
            Some(start) => self.start(start)?,
            None if self.begun => {}
            None => return Err(missing_chunk()),
        }
        self.go_on(chunk)
    }

    /// What is in a chunk, which begins where the one before it ended.
    pub(super) fn go_on(&mut self, chunk: &Chunk) -> io::Result<()> {
        chunk.entries.iter().try_for_each(|entry| self.entry(entry))
    }

    /// Writes the buffer to the sink and flushes that.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the end, without which a trace counts as truncated, and returns the sink.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn finish(mut self) -> io::Result<W> {
        let inputs = self.inputs;
        self.document(|document, _| {
            document.number("end", inputs);
        })?;
        self.flush()?;
        Ok(self.out.sink)
    }

    fn start(&mut self, start: &Start) -> io::Result<()> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        self.now = start.now;
        let info = self.info.clone();
        self.document(|document, names| {
            if is_first {
                header(document, FORMAT, VERSION, &info);
                let is_plain = |disclosure| disclosure == Disclosure::Plain;
                document.flag("redacted", !is_plain(info.texts) || !is_plain(info.addresses));
            } else {
                document.number("lost", start.lost);
            }
            encode::state(document, start, names);
        })?;
        let known = start.topology.description();
        for (&ServerId(id), address) in start.topology.ids() {
            let Some(server) = known.server(address) else { continue };
            let cause = self.cause_of(server);
            self.document(|document, names| {
                document.text("known", &names.name(address)).number("id", id);
                encode::description(document, server, start.now, cause, names);
            })?;
        }
        for (address, reason) in known.excluded() {
            let cause = self.cause(reason);
            self.document(|document, names| {
                document.text("excluded", &names.name(address)).number("e", cause);
            })?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let Entry { now, input, actions } = entry;
        let backwards = *now < self.now;
        self.now = *now;
        self.inputs += 1;
        let cause = match input {
            Recorded::Described { description, .. } => self.cause_of(description),
            Recorded::Same { .. }
            | Recorded::Hosts { .. }
            | Recorded::Close
            | Recorded::Selection(_) => None,
        };
        self.document(|document, names| {
            document.long("t", now.as_nanos() as i64);
            encode_input(document, *now, input, cause, names);
            document.flag("back", backwards);
        })?;
        self.actions(actions)
    }

    fn actions(&mut self, actions: &[ActionRecord]) -> io::Result<()> {
        for actions in actions.chunks(ACTIONS_MAX) {
            self.document(|document, names| {
                document.array("acts", |array| {
                    for (place, action) in actions.iter().enumerate() {
                        array.document(&place.to_string(), |nested| {
                            encode::action(nested, action, names);
                        });
                    }
                });
            })?;
        }
        Ok(())
    }

    /// The number of the error for which a server is Unknown.
    fn cause_of(&mut self, server: &ServerDescription) -> Option<u64> {
        server.error.as_ref().map(|error| self.cause(error))
    }

    fn cause(&mut self, error: &ConnectionError) -> u64 {
        let cause = Cause { summary: error.summary(), text: Some(error.reason().into()) };
        self.causes.number(&cause, self.info.texts, &mut self.out.buffer)
    }

    fn document(&mut self, write: impl FnOnce(&mut Document<'_>, &mut Names)) -> io::Result<()> {
        let mut document = Document::new(&mut self.out.buffer);
        write(&mut document, &mut self.names);
        document.end();
        self.out.pass_on()
    }
}

/// The key behind the time says what it is.
fn encode_input(
    document: &mut Document<'_>,
    now: Instant,
    input: &Recorded,
    cause: Option<u64>,
    names: &mut Names,
) {
    match input {
        Recorded::Described { id: ServerId(id), description } => {
            document.number("server", *id);
            encode::description(document, description, now, cause, names);
        }
        Recorded::Same { id: ServerId(id), round_trip, last_write_ms, updated } => {
            document.number("same", *id);
            if let Some(milliseconds) = last_write_ms {
                document.date("wrote", *milliseconds);
            }
            encode::times(document, *round_trip, *updated, now);
        }
        Recorded::Hosts { hosts } => encode::addresses(document, "hosts", hosts, names),
        Recorded::Close => {
            document.boolean("close", true);
        }
        Recorded::Selection(selection) => encode::selection(document, selection, names),
    }
}

impl<W> fmt::Debug for TraceWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceWriter({} inputs)", self.inputs)
    }
}

/// Actions in one document, so that it is not larger than it may be.
const ACTIONS_MAX: usize = 500;

//! The thread that writes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use cenote_core::trace::{Chunk, FlightRecording, TraceInfo, TraceWriter};
use tokio::sync::oneshot;

use super::error::RecordingError;
use super::recording::Sink;
use super::{log, traces};

/// A file is at most so much behind the pool.
const LAG: Duration = Duration::from_secs(1);

/// What the thread is told.
pub(super) enum Message {
    /// Where chunks come from.
    Begin(Weak<dyn Journaled>),
    /// There is a full chunk.
    Full,
    /// Something went wrong, and this is what went before.
    Dump(FlightRecording, PathBuf),
    /// The last chunks. The trace is to be whole when there is a reply.
    End { rest: Vec<Chunk>, reply: Option<oneshot::Sender<Outcome>> },
}

pub(super) type Outcome = Result<(), RecordingError>;

/// A pool that is recorded.
pub(super) trait Journaled: Send + Sync {
    /// The oldest full chunk, if there is one; with `flush`, all that there is counts as full.
    /// Memory of a chunk that was written is used again.
    fn next_chunk(&self, flush: bool, written: Option<Chunk>) -> Option<Chunk>;

    /// Nobody writes any further what is recorded.
    fn stop(&self);
}

/// Until everybody has hung up who could tell it anything.
pub(super) fn run(
    sink: Option<(Sink, Option<PathBuf>)>,
    info: TraceInfo,
    messages: &Receiver<Message>,
) {
    let (writer, path) = match sink {
        Some((sink, path)) => (Some(TraceWriter::new(sink, info.clone())), path),
        None => (None, None),
    };
    let mut scribe = Scribe { writer, path, info, pool: None, outcome: Ok(()) };
    while let Some(message) = scribe.wait(messages) {
        scribe.obey(message);
    }
}

struct Scribe {
    /// While there is something to be recorded.
    writer: Option<TraceWriter<Sink>>,
    /// Where it writes, if it is a file.
    path: Option<PathBuf>,
    /// For dumps.
    info: TraceInfo,
    pool: Option<Weak<dyn Journaled>>,
    /// How the recording went so far.
    outcome: Outcome,
}

impl Scribe {
    /// The next message. Meanwhile everything that is new is written now and then.
    fn wait(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        while self.writer.is_some() {
            match messages.recv_timeout(LAG) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    self.collect(true);
                    self.with_writer(TraceWriter::flush);
                }
            }
        }
        messages.recv().ok()
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Begin(pool) => self.pool = Some(pool),
            Message::Full => self.collect(false),
            Message::Dump(recording, path) => {
                let written = traces::write(&recording, &self.info, &path);
                match written {
                    Ok(()) => log::trace_dumped(&path),
                    Err(error) => log::recording_failed(&error),
                }
            }
            Message::End { rest, reply } => {
                for chunk in &rest {
                    self.with_writer(|writer| writer.write(chunk));
                }
                self.finish();
                if let Some(reply) = reply {
                    // Whoever asked may have gone.
                    let _ = reply.send(self.outcome.clone());
                }
            }
        }
    }

    /// Writes every full chunk.
    fn collect(&mut self, flush: bool) {
        let (mut flush, mut written) = (flush, None);
        while self.writer.is_some() {
            // Perhaps the last handle: then the rest comes as a message.
            let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) else { return };
            let chunk = pool.next_chunk(flush, written.take());
            drop(pool);
            let Some(chunk) = chunk else { return };
            self.with_writer(|writer| writer.write(&chunk));
            (flush, written) = (false, Some(chunk));
        }
    }

    /// Does something with the writer, if there is one. When it fails, that was the end of it.
    fn with_writer(&mut self, act: impl FnOnce(&mut TraceWriter<Sink>) -> io::Result<()>) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(error) = attempt(|| act(writer)) {
            self.writer = None;
            self.fail(error);
        }
    }

    fn finish(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        if let Err(error) = attempt(|| writer.finish().map(drop)) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        let error = RecordingError::sink(self.path.as_deref(), error);
        log::recording_failed(&error);
        self.outcome = Err(error);
        if let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) {
            pool.stop();
        }
    }
}

/// A writer that panics has failed.
fn attempt(act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let panicked = |_| Err(io::Error::other("the writer panicked"));
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(panicked)
}

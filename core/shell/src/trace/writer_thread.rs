//! The thread that writes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use cenote_core::trace::{Chunk, FlightRecording, TraceInfo, TraceWriter};

use super::error::RecordingError;
use super::log;
use super::pool::Journaled;
use super::recording::Sink;
use super::signal::Signal;
use super::traces::{self, Reason};

/// A file is at most so much behind the pool.
const LAG: Duration = Duration::from_secs(1);

/// How often it is looked whether a signal came.
const GLANCE: Duration = Duration::from_millis(200);

/// What the thread is told.
pub(super) enum Message {
    /// Where chunks come from.
    Begin(Weak<dyn Journaled>),
    /// There is a full chunk.
    Full,
    /// Something went wrong, and this is what went before.
    Dump(FlightRecording, PathBuf, Reason),
    /// The last chunks. The trace is to be whole when there is a reply.
    End { rest: Vec<Chunk>, reply: Option<Reply> },
}

pub(super) type Outcome = Result<(), RecordingError>;
pub(super) type Reply = Box<dyn FnOnce(Outcome) + Send>;

pub(super) struct TraceWriterThread {
    /// While there is something to be recorded.
    writer: Option<TraceWriter<Sink>>,
    /// Where it writes, if it is a file.
    path: Option<PathBuf>,
    /// For dumps.
    info: TraceInfo,
    signal: Option<Signal>,
    pool: Option<Weak<dyn Journaled>>,
    /// When it was looked last for what is new.
    looked: Instant,
    /// How the recording went so far.
    outcome: Outcome,
}

impl TraceWriterThread {
    pub(super) fn new(
        sink: Option<(Sink, Option<PathBuf>)>,
        info: TraceInfo,
        signal: Option<Signal>,
    ) -> Self {
        let (writer, path) = match sink {
            Some((sink, path)) => (Some(TraceWriter::new(sink, info.clone())), path),
            None => (None, None),
        };
        let looked = Instant::now();
        Self { writer, path, info, signal, pool: None, looked, outcome: Ok(()) }
    }

    /// Until everybody has hung up who could tell it anything.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        while let Some(message) = self.wait(messages) {
            self.obey(message);
        }
    }

    /// The next message. Meanwhile everything that is new is written now and then.
    fn wait(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        loop {
            self.look_for_signal();
            let Some(patience) = self.patience() else { return messages.recv().ok() };
            match messages.recv_timeout(patience) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.look_for_news(),
            }
        }
    }

    /// For how long nothing may be looked at; `None`: until there is a message.
    fn patience(&self) -> Option<Duration> {
        match (&self.signal, &self.writer) {
            (Some(_), _) => Some(GLANCE),
            (None, Some(_)) => Some(LAG),
            (None, None) => None,
        }
    }

    fn look_for_signal(&self) {
        let Some(signal) = self.signal.as_ref().filter(|signal| signal.has_come()) else { return };
        // Not there yet, or there no more.
        let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) else { return };
        signal.is_heard();
        let last = pool.last(Reason::Signal);
        drop(pool);
        if let Some((recording, path)) = last {
            self.dump(&recording, &path, Reason::Signal);
        }
    }

    fn look_for_news(&mut self) {
        if self.writer.is_some() && self.looked.elapsed() >= LAG {
            self.looked = Instant::now();
            self.collect(true);
            self.with_writer(TraceWriter::flush);
        }
    }

    fn dump(&self, recording: &FlightRecording, path: &Path, reason: Reason) {
        match traces::write(recording, &self.info, path) {
            Ok(()) => log::trace_dumped(reason, path),
            Err(error) => log::recording_failed(&error),
        }
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Begin(pool) => self.pool = Some(pool),
            Message::Full => self.collect(false),
            Message::Dump(recording, path, reason) => self.dump(&recording, &path, reason),
            Message::End { rest, reply } => {
                // Somebody may have asked a moment before.
                self.look_for_signal();
                for chunk in &rest {
                    self.with_writer(|writer| writer.write(chunk));
                }
                self.finish();
                if let Some(reply) = reply {
                    reply(self.outcome.clone());
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

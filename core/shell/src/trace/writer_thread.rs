//! The thread that writes.

use std::io;
use std::path::PathBuf;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use cenote_core::trace::TraceInfo;

use super::episode::Aftermath;
use super::error::RecordingError;
use super::journaled::Journaled;
use super::log;
use super::new_file::NewFile;
use super::reason::Reason;
use super::recordable::ChunkWriter;
use super::signal::Signal;
use super::sink::OpenSink;
use super::traces;
use crate::runtime::contain;

/// How far a file is behind at most.
const LAG: Duration = Duration::from_secs(1);

/// How often the thread checks for a signal.
const SIGNAL_POLL: Duration = Duration::from_millis(200);

/// What is sent to the thread.
pub(super) enum Message<W: ChunkWriter> {
    /// Where chunks come from.
    Begin(Weak<dyn Journaled<W>>),
    /// Where the chunks go from now on.
    Record(OpenSink),
    /// There is a full chunk.
    Full,
    /// A check-out timed out. This led to it, if it is the first of an episode.
    TimedOut(Option<(W::Flight, NewFile)>),
    /// The last chunks. The reply means that the trace is complete.
    End { rest: Vec<W::Chunk>, reply: Option<Reply> },
}

pub(super) type Outcome = Result<(), RecordingError>;
pub(super) type Reply = Box<dyn FnOnce(Outcome) + Send>;

pub(super) struct TraceWriterThread<W: ChunkWriter> {
    /// Until the recording ends or fails.
    writer: Option<W>,
    /// Where it writes, if it is a file.
    path: Option<PathBuf>,
    /// For dumps.
    info: TraceInfo,
    signal: Option<Signal>,
    owner: Option<Weak<dyn Journaled<W>>>,
    /// What follows timeouts, if they are dumped.
    aftermath: Option<Aftermath>,
    /// When chunks were last collected before they were full.
    flushed: Instant,
    /// The first error of the recording.
    outcome: Outcome,
}

impl<W: ChunkWriter> TraceWriterThread<W> {
    pub(super) fn new(
        sink: Option<OpenSink>,
        info: TraceInfo,
        signal: Option<Signal>,
        aftermath: Option<Aftermath>,
    ) -> Self {
        let (writer, path) = match sink {
            Some((sink, path)) => (Some(W::new(sink, info.clone())), path),
            None => (None, None),
        };
        let flushed = Instant::now();
        Self { writer, path, info, signal, owner: None, aftermath, flushed, outcome: Ok(()) }
    }

    /// Runs until all senders are gone.
    pub(super) fn run(mut self, messages: &Receiver<Message<W>>) {
        while let Some(message) = self.wait(messages) {
            self.handle(message);
        }
    }

    /// The next message. Meanwhile the file is kept at most [`LAG`] behind.
    fn wait(&mut self, messages: &Receiver<Message<W>>) -> Option<Message<W>> {
        loop {
            self.look_for_signal();
            self.look_for_end_of_episode();
            let Some(timeout) = self.timeout() else { return messages.recv().ok() };
            match messages.recv_timeout(timeout) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.flush_partial_chunk(),
            }
        }
    }

    /// How long to wait for a message before looking for work; `None` means without limit.
    fn timeout(&self) -> Option<Duration> {
        let poll = self.signal.as_ref().map(|_| SIGNAL_POLL);
        let lag = self.writer.as_ref().map(|_| LAG);
        [poll, lag, self.aftermath.as_ref().and_then(Aftermath::time_left)]
            .into_iter()
            .flatten()
            .min()
    }

    fn look_for_end_of_episode(&mut self) {
        if self.aftermath.as_mut().is_some_and(Aftermath::is_over) {
            let file = self.dump(Reason::AfterTimeouts);
            self.dumped(file, Reason::AfterTimeouts);
        }
    }

    fn dumped(&mut self, file: Option<PathBuf>, reason: Reason) {
        if let Some(aftermath) = &mut self.aftermath {
            aftermath.dumped(file, reason);
        }
    }

    /// What the flight recorder holds now, unless its owner is not made yet, or dropped. Returns the file.
    fn dump(&self, reason: Reason) -> Option<PathBuf> {
        let owner = self.owner.as_ref().and_then(Weak::upgrade)?;
        let last = owner.last(reason);
        drop(owner);
        let (recording, file) = last?;
        traces::dump::<W>(&recording, &self.info, &file, reason)
    }

    fn look_for_signal(&self) {
        let Some(signal) = self.signal.as_ref().filter(|signal| signal.has_come()) else { return };
        if self.owner.as_ref().is_some_and(|owner| owner.strong_count() > 0) {
            signal.is_heard();
            self.dump(Reason::Signal);
        }
    }

    fn flush_partial_chunk(&mut self) {
        if self.writer.is_some() && self.flushed.elapsed() >= LAG {
            self.flushed = Instant::now();
            self.collect(true);
            self.with_writer(W::flush);
        }
    }

    fn handle(&mut self, message: Message<W>) {
        match message {
            Message::Begin(owner) => self.owner = Some(owner),
            Message::Record((sink, path)) => {
                self.writer = Some(W::new(sink, self.info.clone()));
                (self.path, self.flushed, self.outcome) = (path, Instant::now(), Ok(()));
            }
            Message::Full => self.collect(false),
            Message::TimedOut(last) => {
                if last.is_some() && self.aftermath.as_mut().is_some_and(Aftermath::cut_short) {
                    let file = self.dump(Reason::AfterTimeouts);
                    self.dumped(file, Reason::AfterTimeouts);
                }
                self.aftermath.as_mut().map(Aftermath::timed_out);
                if let Some((recording, file)) = last {
                    let reason = Reason::WaitQueueTimeout;
                    let file = traces::dump::<W>(&recording, &self.info, &file, reason);
                    self.dumped(file, reason);
                }
            }
            Message::End { rest, reply } => {
                // The signal may have come a moment before.
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
            // If this is the last handle, the rest comes as a message.
            let Some(owner) = self.owner.as_ref().and_then(Weak::upgrade) else { return };
            let chunk = owner.next_chunk(flush, written.take());
            drop(owner);
            let Some(chunk) = chunk else { return };
            self.with_writer(|writer| writer.write(&chunk));
            (flush, written) = (false, Some(chunk));
        }
    }

    /// Uses the writer, if there is one. An error ends the recording.
    fn with_writer(&mut self, act: impl FnOnce(&mut W) -> io::Result<()>) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(error) = attempt(|| act(writer)) {
            self.writer = None;
            self.fail(error);
        }
    }

    fn finish(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        if let Err(error) = attempt(|| writer.finish()) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        let error = RecordingError::sink(self.path.as_deref(), error);
        log::recording_failed(&error);
        self.outcome = Err(error);
        if let Some(owner) = self.owner.as_ref().and_then(Weak::upgrade) {
            owner.stop();
        }
    }
}

/// A writer that panics has failed.
fn attempt(act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    contain(act).unwrap_or_else(|| Err(io::Error::other("the writer panicked")))
}

//! The way to the thread that writes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::episode::{Episodes, TimedOut};
use super::error::RecordingError;
use super::new_file::NewFile;
use super::recordable::ChunkWriter;
use super::writer_thread::{Message, TraceWriterThread};
use crate::runtime::process::Process;

/// How long the end of what is recorded waits for the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lies under the lock of what is recorded.
pub(super) struct TraceWriterHandle<W: ChunkWriter> {
    sender: Sender<Message<W>>,
    /// Hangs up when the thread has ended.
    ended: Receiver<()>,
    thread: ThreadId,
    /// Where the thread runs. In a child process it does not.
    process: Process,
    /// The thread was told of a full chunk, and has not found that there are no more.
    is_called: bool,
    /// If they are dumped.
    episodes: Option<Episodes>,
}

impl<W: ChunkWriter> TraceWriterHandle<W> {
    pub(super) fn new(
        writer: TraceWriterThread<W>,
        episodes: Option<Episodes>,
    ) -> Result<Self, RecordingError> {
        let (sender, messages) = channel();
        let (ending, ended) = channel();
        let thread = thread::Builder::new().name("cenote-trace".to_owned()).spawn(move || {
            writer.run(&messages);
            drop::<Sender<()>>(ending);
        });
        let thread = thread.map_err(|error| RecordingError::Thread(Arc::new(error)))?;
        let (thread, process) = (thread.thread().id(), Process::current());
        Ok(Self { sender, ended, thread, process, is_called: false, episodes })
    }

    pub(super) fn send(&self, message: Message<W>) {
        // The thread outlives this handle. If it has panicked, ending the recording reports that.
        let _ = self.sender.send(message);
    }

    pub(super) fn call(&mut self) {
        if !self.is_called {
            self.is_called = true;
            self.send(Message::Full);
        }
    }

    /// No chunk was left.
    pub(super) const fn was_answered(&mut self) {
        self.is_called = false;
    }

    /// A check-out has timed out. `last` is what led to it: for the first of an episode.
    pub(super) fn timed_out(&mut self, last: impl FnOnce() -> Option<(W::Flight, NewFile)>) {
        let Some(episodes) = &mut self.episodes else { return };
        match episodes.timed_out(Instant::now()) {
            TimedOut::Known => {}
            TimedOut::StillGoesOn => self.send(Message::TimedOut(None)),
            TimedOut::First => self.send(Message::TimedOut(last())),
        }
    }

    pub(super) const fn process(&self) -> Process {
        self.process
    }

    /// The last of it is written, and the thread ends. Waits for that, but not for ever.
    pub(super) fn end(self, rest: Vec<W::Chunk>) {
        self.send(Message::End { rest, reply: None });
        let Self { sender, ended, thread, .. } = self;
        drop(sender);
        // The thread may be the one that drops it.
        if thread != thread::current().id() {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

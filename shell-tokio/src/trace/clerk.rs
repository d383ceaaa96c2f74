//! What lies under the lock for those who write without it.

use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use cenote_core::trace::{Chunk, FlightRecording, TraceInfo};

use super::error::RecordingError;
use super::recording::Sink;
use super::scribe::{self, Journaled, Message};
use super::traces::{Reason, Traces};
use crate::connector::Connector;
use crate::desk::Desk;
use crate::shared::Shared;

/// How long the end of a pool waits for the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the thread that writes.
pub(crate) struct Clerk {
    scribe: Sender<Message>,
    /// Hangs up when the thread has ended.
    ended: Receiver<()>,
    thread: ThreadId,
    /// Where the thread runs. In a child process it does not.
    process: u32,
    /// The thread was told of a full chunk, and has not found that there are no more.
    is_called: bool,
    /// The first timeout is still to come, and to be dumped.
    awaits_timeout: bool,
}

impl Clerk {
    pub(super) fn new(
        sink: Option<(Sink, Option<PathBuf>)>,
        info: TraceInfo,
        awaits_timeout: bool,
    ) -> Result<Self, RecordingError> {
        let (scribe, messages) = channel();
        let (ending, ended) = channel();
        let thread = thread::Builder::new().name("cenote-trace".to_owned()).spawn(move || {
            scribe::run(sink, info, &messages);
            drop::<Sender<()>>(ending);
        });
        let thread = thread.map_err(|error| RecordingError::Thread(Arc::new(error)))?;
        let (thread, process) = (thread.thread().id(), process::id());
        Ok(Self { scribe, ended, thread, process, is_called: false, awaits_timeout })
    }

    /// Shows the thread where there are chunks to be had.
    pub(super) fn show(&self, pool: Weak<dyn Journaled>) {
        self.send(Message::Begin(pool));
    }

    pub(super) fn send(&self, message: Message) {
        // The thread ends after this. If it has panicked, nobody writes, and the end says so.
        let _ = self.scribe.send(message);
    }

    /// No chunk was left.
    pub(super) const fn was_answered(&mut self) {
        self.is_called = false;
    }

    fn call(&mut self) {
        if !self.is_called {
            self.is_called = true;
            self.send(Message::Full);
        }
    }

    fn dump(&mut self, recording: FlightRecording, path: PathBuf) {
        self.awaits_timeout = false;
        self.send(Message::Dump(recording, path));
    }

    /// The last of it is written, and the thread ends. Waits for that, but not for ever.
    fn end(self, rest: Vec<Chunk>) {
        self.send(Message::End { rest, reply: None });
        let Self { scribe, ended, thread, .. } = self;
        drop(scribe);
        // The thread may be the one that drops the pool.
        if thread != thread::current().id() {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

impl<K: Connector> Desk<K> {
    /// Whether there is anything for the clerk to do.
    #[inline(always)]
    pub(crate) fn wants_clerk(&self) -> bool {
        self.clerk.is_some() && (self.noted.has_timed_out || self.state.has_full_chunk())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn call_clerk(&mut self, traces: &Traces) {
        let has_timed_out = std::mem::take(&mut self.noted.has_timed_out);
        let Some(clerk) = &mut self.clerk else { return };
        if self.state.has_full_chunk() {
            clerk.call();
        }
        if has_timed_out && clerk.awaits_timeout {
            let path = traces.path(Reason::WaitQueueTimeout);
            if let (Some(recording), Some(path)) = (self.state.flight_recording(), path) {
                clerk.dump(recording, path);
            }
        }
    }

    /// What was recorded and not taken yet. Then the recording is over.
    pub(super) fn end_journal(&mut self) -> Vec<Chunk> {
        self.state.flush();
        let rest = std::iter::from_fn(|| self.state.take_chunk()).collect();
        self.drop_journal();
        rest
    }

    /// Nobody writes any further what is recorded.
    pub(super) fn drop_journal(&mut self) {
        self.state.end_journal();
        self.is_journaled = false;
    }

    /// The thread that writes is that of another process, and so are its files.
    pub(crate) fn stop_writing(&mut self) {
        // Not dropped: it may have been in use by another thread when the process was forked.
        std::mem::forget(self.clerk.take());
        self.drop_journal();
    }
}

impl<K: Connector> Drop for Desk<K> {
    fn drop(&mut self) {
        match self.clerk.take() {
            None => {}
            Some(clerk) if clerk.process == process::id() => clerk.end(self.end_journal()),
            Some(clerk) => std::mem::forget(clerk),
        }
    }
}

impl<K: Connector> Shared<K> {
    /// Begins to write what is recorded, and to look out for what is to be dumped.
    pub(crate) fn watch_traces(self: &Arc<Self>) {
        let this: Weak<Self> = Arc::downgrade(self);
        if let Some(clerk) = &self.lock().clerk {
            clerk.show(this.clone());
        }
        if self.traces.dumps_by_itself() {
            super::panic::watch(this);
        }
    }
}

impl<K: Connector> Journaled for Shared<K> {
    fn next_chunk(&self, flush: bool, written: Option<Chunk>) -> Option<Chunk> {
        let mut desk = self.lock();
        if let Some(written) = written {
            desk.state.give_back(written);
        }
        if flush {
            desk.state.flush();
        }
        let chunk = desk.state.take_chunk();
        if let (None, Some(clerk)) = (&chunk, &mut desk.clerk) {
            clerk.was_answered();
        }
        chunk
    }

    fn stop(&self) {
        self.lock().drop_journal();
    }
}

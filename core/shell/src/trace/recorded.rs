//! A machine under its lock, with its recorder and the handle of the thread that writes.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Weak;

use cenote_core::pool::PoolTypes;
use cenote_core::trace::{JournalOptions, Recorder, TraceCause, TraceWriter};

use super::journaled::Journaled;
use super::reason::Reason;
use super::recordable::{ChunkWriter, Recordable};
use super::sink::{OpenSink, Sink};
use super::traces::Traces;
use super::writer_handle::TraceWriterHandle;
use super::writer_thread::{Message, Reply};

/// A machine with its recorder, and the handle of the thread that writes. Dereferences to the recorder, which is fed in
/// place of the machine.
///
/// Dropped with its owner, it has the thread write the rest, and waits for that, for five seconds at most.
pub struct Recorded<K: Recordable> {
    recorder: K,
    /// A copy of the recorder's flag, which is read for each input.
    is_journaled: bool,
    /// There if anything is written automatically.
    writer: Option<TraceWriterHandle<K::Writer>>,
}

/// The machine of a pool.
pub type RecordedPool<S> = Recorded<Recorder<S>>;

impl<K: Recordable> Recorded<K> {
    pub(super) fn new(recorder: K, writer: Option<TraceWriterHandle<K::Writer>>) -> Self {
        let is_journaled = recorder.is_journaled();
        Self { recorder, is_journaled, writer }
    }

    /// Whether everything is recorded, each input with the time at which it came.
    #[inline(always)]
    pub const fn is_journaled(&self) -> bool {
        self.is_journaled
    }

    /// Hands a full chunk to the thread that writes, if there is one.
    pub fn call_writer_if_full(&mut self) {
        if let Some(writer) = self.writer.as_mut().filter(|_| self.recorder.has_full_chunk()) {
            writer.call();
        }
    }

    /// In a child process: the thread that writes and its files are the parent's.
    pub fn stop_writing(&mut self) {
        // Not dropped: it may have been in use by another thread when the process was forked.
        std::mem::forget(self.writer.take());
        self.drop_journal();
    }

    /// Whether there is a thread that writes.
    pub(super) const fn has_writer(&self) -> bool {
        self.writer.is_some()
    }

    /// Tells the thread where to get chunks.
    pub(super) fn show(&self, owner: Weak<dyn Journaled<K::Writer>>) {
        if let Some(writer) = &self.writer {
            writer.send(Message::Begin(owner));
        }
    }

    pub(super) fn next_chunk(
        &mut self,
        flush: bool,
        written: Option<<K::Writer as ChunkWriter>::Chunk>,
    ) -> Option<<K::Writer as ChunkWriter>::Chunk> {
        if let Some(written) = written {
            self.recorder.give_back(written);
        }
        if flush {
            self.recorder.flush();
        }
        let chunk = self.recorder.take_chunk();
        if let (None, Some(writer)) = (&chunk, &mut self.writer) {
            writer.was_answered();
        }
        chunk
    }

    /// Ends the recording; `reply` is called when all of it is written. `false` without a recording.
    pub(super) fn end(&mut self, reply: Reply) -> bool {
        if self.writer.is_none() {
            return false;
        }
        let rest = self.end_journal();
        if let Some(writer) = &self.writer {
            writer.send(Message::End { rest, reply: Some(reply) });
        }
        true
    }

    /// Drops the recording: nothing is written any more.
    pub(super) fn drop_journal(&mut self) {
        self.recorder.end_journal();
        self.is_journaled = false;
    }

    /// What was recorded and not taken yet. Then the recording is over.
    fn end_journal(&mut self) -> Vec<<K::Writer as ChunkWriter>::Chunk> {
        self.recorder.flush();
        let rest = std::iter::from_fn(|| self.recorder.take_chunk()).collect();
        self.drop_journal();
        rest
    }
}

impl<S: PoolTypes<Cause: TraceCause>> RecordedPool<S> {
    /// Records everything from now on. `writer` is the thread for it, if there was none. `false` while
    /// another recording runs.
    pub(super) fn begin(
        &mut self,
        sink: OpenSink,
        journal: JournalOptions,
        writer: Option<TraceWriterHandle<TraceWriter<Sink>>>,
        owner: Weak<dyn Journaled<TraceWriter<Sink>>>,
    ) -> bool {
        if self.is_journaled {
            return false;
        }
        if self.writer.is_none() {
            self.writer = writer;
            self.show(owner);
        }
        let Some(writer) = &mut self.writer else { return false };
        writer.send(Message::Record(sink));
        // What the journal before this one has called for is over.
        writer.was_answered();
        self.recorder.begin_journal(journal);
        self.is_journaled = true;
        true
    }

    /// Whether [`call_writer`](Self::call_writer) has work. `has_timed_out`: a check-out failed with
    /// [`WaitQueueTimeout`](cenote_core::pool::CheckOutError::WaitQueueTimeout) since the last call.
    #[inline(always)]
    pub fn wants_writer(&self, has_timed_out: bool) -> bool {
        self.writer.is_some() && (has_timed_out || self.recorder.has_full_chunk())
    }

    /// Hands work to the thread that writes: a full chunk, or what led to a timeout.
    #[cold]
    #[inline(never)]
    pub fn call_writer(&mut self, has_timed_out: bool, traces: &Traces) {
        self.call_writer_if_full();
        let Some(writer) = &mut self.writer else { return };
        if has_timed_out {
            let recorder = &self.recorder;
            writer.timed_out(|| {
                recorder.flight_recording().zip(traces.file(Reason::WaitQueueTimeout))
            });
        }
    }
}

impl<K: Recordable> Deref for Recorded<K> {
    type Target = K;

    #[inline(always)]
    fn deref(&self) -> &K {
        &self.recorder
    }
}

impl<K: Recordable> DerefMut for Recorded<K> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut K {
        &mut self.recorder
    }
}

impl<K: Recordable> Drop for Recorded<K> {
    fn drop(&mut self) {
        match self.writer.take() {
            None => {}
            Some(writer) if writer.process().is_current() => writer.end(self.end_journal()),
            Some(writer) => std::mem::forget(writer),
        }
    }
}

impl<K: Recordable + fmt::Debug> fmt::Debug for Recorded<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recorder, is_journaled: _, writer } = self;
        f.debug_struct("Recorded")
            .field("recorder", recorder)
            .field("is_written", &writer.is_some())
            .finish()
    }
}

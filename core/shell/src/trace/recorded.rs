//! What lies under a pool's lock for those who write without it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::process;
use std::sync::Weak;

use cenote_core::pool::PoolTypes;
use cenote_core::trace::{Chunk, Recorder, TraceCause};

use super::pool::Journaled;
use super::traces::{Reason, Traces};
use super::writer_handle::TraceWriterHandle;
use super::writer_thread::{Message, Reply};

/// The machine with its recorder, and the way to the thread that writes. To look at and to feed it is
/// the [`Recorder`].
///
/// Dropped, which is when nobody uses the pool any more, it has the thread write the rest, and waits
/// for that, for five seconds at most.
pub struct RecordedPool<S: PoolTypes<Cause: TraceCause>> {
    recorder: Recorder<S>,
    /// As the recorder has it, where it is looked at for each input.
    is_journaled: bool,
    /// Sees to it that recordings are written, if any are without being asked for.
    clerk: Option<TraceWriterHandle>,
}

impl<S: PoolTypes<Cause: TraceCause>> RecordedPool<S> {
    pub(super) const fn new(recorder: Recorder<S>, clerk: Option<TraceWriterHandle>) -> Self {
        let is_journaled = recorder.is_journaled();
        Self { recorder, is_journaled, clerk }
    }

    /// Whether everything is recorded, each input with the time at which it came.
    #[inline(always)]
    pub const fn is_journaled(&self) -> bool {
        self.is_journaled
    }

    /// Whether there is anything for [`call_writer`](Self::call_writer) to do. `has_timed_out`:
    /// somebody waited in vain for a connection, as a check-out that failed with
    /// [`WaitQueueTimeout`](cenote_core::pool::CheckOutError::WaitQueueTimeout), since this was asked.
    #[inline(always)]
    pub fn wants_writer(&self, has_timed_out: bool) -> bool {
        self.clerk.is_some() && (has_timed_out || self.recorder.has_full_chunk())
    }

    /// Has what is to be written written by somebody else: a chunk that is full, or what led to the
    /// first timeout.
    #[cold]
    #[inline(never)]
    pub fn call_writer(&mut self, has_timed_out: bool, traces: &Traces) {
        let Some(clerk) = &mut self.clerk else { return };
        if self.recorder.has_full_chunk() {
            clerk.call();
        }
        if has_timed_out && clerk.awaits_timeout() {
            let path = traces.path(Reason::WaitQueueTimeout);
            if let (Some(recording), Some(path)) = (self.recorder.flight_recording(), path) {
                clerk.dump(recording, path);
            }
        }
    }

    /// In a child process: the thread that writes is that of the parent, and so are its files.
    pub fn stop_writing(&mut self) {
        // Not dropped: it may have been in use by another thread when the process was forked.
        std::mem::forget(self.clerk.take());
        self.drop_journal();
    }

    /// Shows the thread where there are chunks to be had.
    pub(super) fn show(&self, pool: Weak<dyn Journaled>) {
        if let Some(clerk) = &self.clerk {
            clerk.send(Message::Begin(pool));
        }
    }

    pub(super) fn next_chunk(&mut self, flush: bool, written: Option<Chunk>) -> Option<Chunk> {
        if let Some(written) = written {
            self.recorder.give_back(written);
        }
        if flush {
            self.recorder.flush();
        }
        let chunk = self.recorder.take_chunk();
        if let (None, Some(clerk)) = (&chunk, &mut self.clerk) {
            clerk.was_answered();
        }
        chunk
    }

    /// Ends the recording; `reply` hears when all of it is written. `false` if nobody writes.
    pub(super) fn end(&mut self, reply: Reply) -> bool {
        if self.clerk.is_none() {
            return false;
        }
        let rest = self.end_journal();
        if let Some(clerk) = &self.clerk {
            clerk.send(Message::End { rest, reply: Some(reply) });
        }
        true
    }

    /// Nobody writes any further what is recorded.
    pub(super) fn drop_journal(&mut self) {
        self.recorder.end_journal();
        self.is_journaled = false;
    }

    /// What was recorded and not taken yet. Then the recording is over.
    fn end_journal(&mut self) -> Vec<Chunk> {
        self.recorder.flush();
        let rest = std::iter::from_fn(|| self.recorder.take_chunk()).collect();
        self.drop_journal();
        rest
    }
}

impl<S: PoolTypes<Cause: TraceCause>> Deref for RecordedPool<S> {
    type Target = Recorder<S>;

    #[inline(always)]
    fn deref(&self) -> &Recorder<S> {
        &self.recorder
    }
}

impl<S: PoolTypes<Cause: TraceCause>> DerefMut for RecordedPool<S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Recorder<S> {
        &mut self.recorder
    }
}

impl<S: PoolTypes<Cause: TraceCause>> Drop for RecordedPool<S> {
    fn drop(&mut self) {
        match self.clerk.take() {
            None => {}
            Some(clerk) if clerk.process() == process::id() => clerk.end(self.end_journal()),
            Some(clerk) => std::mem::forget(clerk),
        }
    }
}

impl<S: PoolTypes<Cause: TraceCause>> fmt::Debug for RecordedPool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recorder, is_journaled: _, clerk } = self;
        f.debug_struct("RecordedPool")
            .field("recorder", recorder)
            .field("is_written", &clerk.is_some())
            .finish()
    }
}

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::PoolDriver;
use super::handle::Pool;
use super::types::Types;
use crate::connection::Connector;
use crate::runtime::Runtime;
use crate::signal::Signal;
use crate::trace::{self, RecordedPool, RecordingError, TracedPool, Traces};

impl<R: Runtime, K: Connector<R>> Pool<R, K> {
    /// Writes what the [flight recorder](crate::builder::Builder::flight_recorder) holds into a file, over
    /// what was there: how the pool came to be as it is now, ready for `cenote replay`.
    ///
    /// Under the pool's lock it copies the recorder's memory. Writing blocks as long as the disk does:
    /// asynchronous code puts this into a blocking task.
    ///
    /// # Errors
    ///
    /// When there is no flight recorder, or the file cannot be written.
    pub fn dump_trace(&self, path: impl AsRef<Path>) -> Result<(), RecordingError> {
        trace::dump(&**self.driver(), path.as_ref())
    }

    /// The same into any writer, which need not buffer. Returns it.
    ///
    /// # Errors
    ///
    /// When there is no flight recorder, or those of the writer.
    pub fn write_trace<W: io::Write>(&self, sink: W) -> Result<W, RecordingError> {
        trace::write(&**self.driver(), sink)
    }

    /// Ends [the recording](crate::builder::Builder::record) and waits until the trace is complete, with
    /// everything that happened up to this call; dumps that were under way are written then, too. The pool
    /// goes on, and so does its flight recorder. Cancel-safe: the recording ends all the same.
    ///
    /// Without a recording, and when it was ended before, it returns at once.
    ///
    /// # Errors
    ///
    /// What kept the trace from being written completely.
    pub async fn end_recording(&self) -> Result<(), RecordingError> {
        let Some(end) = self.begin_end_of_recording() else { return Ok(()) };
        let written = end.written.listen();
        match end.take() {
            Some(outcome) => outcome,
            None => {
                written.await;
                end.take().unwrap_or_else(|| Err(RecordingError::ended()))
            }
        }
    }

    /// As [`end_recording`](Self::end_recording), and blocks the thread.
    ///
    /// # Errors
    ///
    /// As [`end_recording`](Self::end_recording).
    pub fn end_recording_blocking(&self) -> Result<(), RecordingError> {
        let Some(end) = self.begin_end_of_recording() else { return Ok(()) };
        let written = end.written.listen();
        match end.take() {
            Some(outcome) => outcome,
            None => {
                _ = written.wait(None);
                end.take().unwrap_or_else(|| Err(RecordingError::ended()))
            }
        }
    }

    fn begin_end_of_recording(&self) -> Option<Arc<EndOfRecording>> {
        let end = Arc::new(EndOfRecording::default());
        let reply = Reply(Arc::clone(&end));
        trace::end_recording(&**self.driver(), move |outcome| reply.send(outcome)).then_some(end)
    }
}

/// What the thread that writes says in the end.
#[derive(Default)]
struct EndOfRecording {
    outcome: Mutex<Option<Result<(), RecordingError>>>,
    written: Signal,
}

/// Dropped without an outcome, it says that the thread has ended.
struct Reply(Arc<EndOfRecording>);

impl Reply {
    fn send(self, outcome: Result<(), RecordingError>) {
        self.0.set(outcome);
    }
}

impl EndOfRecording {
    fn set(&self, outcome: Result<(), RecordingError>) {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(outcome);
        self.written.notify_all();
    }

    fn take(&self) -> Option<Result<(), RecordingError>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.0.set(Err(RecordingError::ended()));
    }
}

impl<R: Runtime, K: Connector<R>> TracedPool for PoolDriver<R, K> {
    type PoolTypes = Types<R, K>;

    fn locked<T>(&self, act: impl FnOnce(&mut RecordedPool<Types<R, K>>) -> T) -> T {
        act(&mut self.lock().state)
    }

    fn try_locked<T>(&self, act: impl FnOnce(&mut RecordedPool<Types<R, K>>) -> T) -> Option<T> {
        self.try_lock().map(|mut inner| act(&mut inner.state))
    }

    fn traces(&self) -> &Traces {
        self.traces()
    }
}

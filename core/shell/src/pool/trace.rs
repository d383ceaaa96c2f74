use std::io;
use std::path::Path;

use cenote_core::trace::Recorder;

use super::driver::PoolDriver;
use super::handle::Pool;
use super::types::Types;
use crate::connection::Connector;
use crate::runtime::Runtime;
use crate::trace::{self, RecordedPool, RecordingError, Traced, Traces};

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
        trace::end(&**self.driver()).await
    }

    /// As [`end_recording`](Self::end_recording), and blocks the thread.
    ///
    /// # Errors
    ///
    /// As [`end_recording`](Self::end_recording).
    pub fn end_recording_blocking(&self) -> Result<(), RecordingError> {
        trace::end_blocking(&**self.driver())
    }
}

impl<R: Runtime, K: Connector<R>> Traced for PoolDriver<R, K> {
    type Recorder = Recorder<Types<R, K>>;

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

//! Recording what happens to a pool: [`cenote_shell::trace`].

use std::io;
use std::path::Path;
use std::sync::mpsc::channel;

use cenote_shell::trace::{self, RecordedPool, RecordingError, TracedPool, Traces};

use crate::connector::Connector;
use crate::desk::Mio;
use crate::pool::Pool;
use crate::shared::Shared;

impl<K: Connector> Pool<K> {
    /// Writes what the [flight recorder](crate::Builder::flight_recorder) holds into a file, over
    /// what was there: how the pool came to be as it is now, ready for `cenote replay`.
    ///
    /// Under the pool's lock it copies the recorder's memory. Writing blocks as long as the disk
    /// does.
    ///
    /// # Errors
    ///
    /// When there is no flight recorder, or the file cannot be written.
    pub fn dump_trace(&self, path: impl AsRef<Path>) -> Result<(), RecordingError> {
        trace::dump(&**self.shared(), path.as_ref())
    }

    /// The same into any writer, which need not buffer. Gives it back.
    ///
    /// # Errors
    ///
    /// When there is no flight recorder, or those of the writer.
    pub fn write_trace<W: io::Write>(&self, sink: W) -> Result<W, RecordingError> {
        trace::write(&**self.shared(), sink)
    }

    /// Ends [the recording](crate::Builder::record) and blocks until the trace is whole: with all that
    /// happened up to this call. Dumps that were under way are written then, too. The pool goes on,
    /// and so does its flight recorder.
    ///
    /// Without a recording, and when it was ended before, there is nothing to end.
    ///
    /// # Errors
    ///
    /// What kept the trace from being written whole.
    pub fn end_recording(&self) -> Result<(), RecordingError> {
        let (reply, replied) = channel();
        let reply = move |outcome| drop(reply.send(outcome));
        if !trace::end_recording(&**self.shared(), reply) {
            return Ok(());
        }
        replied.recv().unwrap_or_else(|_| Err(RecordingError::ended()))
    }
}

impl<K: Connector> TracedPool for Shared<K> {
    type PoolTypes = Mio<K>;

    fn locked<R>(&self, act: impl FnOnce(&mut RecordedPool<Mio<K>>) -> R) -> R {
        act(&mut self.lock().state)
    }

    fn try_locked<R>(&self, act: impl FnOnce(&mut RecordedPool<Mio<K>>) -> R) -> Option<R> {
        self.try_lock().map(|mut desk| act(&mut desk.state))
    }

    fn traces(&self) -> &Traces {
        &self.traces
    }
}

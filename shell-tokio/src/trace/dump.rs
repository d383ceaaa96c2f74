//! The flight recorder, as its pool shows it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cenote_core::trace::FlightRecording;

use super::error::RecordingError;
use super::traces;
use crate::connector::Connector;
use crate::pool::Pool;

impl<K: Connector> Pool<K> {
    /// Writes what the [flight recorder](crate::Builder::flight_recorder) holds into a file, over
    /// what was there: how the pool came to be as it is now, ready for `cenote replay`.
    ///
    /// Under the pool's lock it copies the recorder's memory. Writing blocks as long as the disk
    /// does, which is why asynchronous code puts this into `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// When there is no flight recorder, or the file cannot be written.
    pub fn dump_trace(&self, path: impl AsRef<Path>) -> Result<(), RecordingError> {
        traces::write(&self.flight_recording()?, &self.shared().traces.info, path.as_ref())
    }

    /// The same into any writer, which need not buffer. Gives it back.
    ///
    /// # Errors
    ///
    /// When there is no flight recorder, or those of the writer.
    pub fn write_trace<W: io::Write>(&self, sink: W) -> Result<W, RecordingError> {
        let written = self.flight_recording()?.write_to(&self.shared().traces.info, sink);
        written.map_err(|error| RecordingError::Writer(Arc::new(error)))
    }

    fn flight_recording(&self) -> Result<FlightRecording, RecordingError> {
        let recording = self.shared().lock().state.flight_recording();
        recording.ok_or(RecordingError::NoFlightRecorder)
    }
}

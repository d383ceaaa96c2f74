//! What a pool's own methods do: the end of a recording, and the flight recorder.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cenote_core::trace::FlightRecording;

use super::error::RecordingError;
use super::pool::TracedPool;
use super::traces;

/// Ends the recording of a pool: with all that happened up to this call. `reply` hears on the thread
/// that writes, when the trace and dumps that were under way are whole; it must not block. `false`:
/// there is no recording to end. If `reply` is dropped instead, the
/// [thread has ended](RecordingError::ended).
pub fn end_recording(
    pool: &impl TracedPool,
    reply: impl FnOnce(Result<(), RecordingError>) + Send + 'static,
) -> bool {
    pool.locked(|recorded| recorded.end(Box::new(reply)))
}

/// Writes what the flight recorder holds into a file, over what was there. Under the pool's lock it
/// copies the recorder's memory; then it blocks as long as the disk does.
///
/// # Errors
///
/// When there is no flight recorder, or the file cannot be written.
pub fn dump(pool: &impl TracedPool, path: &Path) -> Result<(), RecordingError> {
    traces::write(&flight_recording(pool)?, pool.traces().info(), path)
}

/// The same into any writer, which need not buffer. Gives it back.
///
/// # Errors
///
/// When there is no flight recorder, or those of the writer.
pub fn write<W: io::Write>(pool: &impl TracedPool, sink: W) -> Result<W, RecordingError> {
    let written = flight_recording(pool)?.write_to(pool.traces().info(), sink);
    written.map_err(|error| RecordingError::Writer(Arc::new(error)))
}

fn flight_recording(pool: &impl TracedPool) -> Result<FlightRecording, RecordingError> {
    let recording = pool.locked(|recorded| recorded.flight_recording());
    recording.ok_or(RecordingError::NoFlightRecorder)
}

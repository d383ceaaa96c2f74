//! What a pool's own methods do: the end of a recording, and the flight recorder.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use cenote_core::pool::PoolTypes;
use cenote_core::trace::{JournalOptions, Recorder, TraceCause};

use super::error::RecordingError;
use super::journaled::Journaled;
use super::new_file;
use super::reason::Reason;
use super::recordable::{ChunkWriter as _, Recordable as _};
use super::sink::OpenSink;
use super::traced::{FlightOf, Traced, WriterOf};
use super::traces;
use super::writer_handle::TraceWriterHandle;
use super::writer_thread::TraceWriterThread;

/// Records everything from now on in a new file of this folder, until the recording is
/// [ended](end_recording). Returns the file.
///
/// # Errors
///
/// A recording runs already, there is no thread for it, or the file cannot be created.
pub fn record_into<S: PoolTypes<Cause: TraceCause>, T: Traced<Recorder = Recorder<S>>>(
    pool: &Arc<T>,
    folder: &Path,
) -> Result<PathBuf, RecordingError> {
    let traces = pool.traces();
    let (is_journaled, has_writer) =
        pool.locked(|recorded| (recorded.is_journaled(), recorded.has_writer()));
    if is_journaled {
        return Err(RecordingError::IsRecording);
    }
    let (file, path) = traces.file_in(folder, Reason::Recording).create()?;
    let journal = JournalOptions::default();
    let sink: OpenSink = (Box::new(file), Some(path.clone()));
    // No thread is started under the lock.
    let start = || {
        let thread = TraceWriterThread::new(None, traces.info().clone(), None, None);
        TraceWriterHandle::new(thread, None)
    };
    let writer = if has_writer { None } else { Some(start()?) };
    let weak: Weak<dyn Journaled<WriterOf<T>>> = Arc::downgrade(pool) as _;
    let has_begun = pool.locked(|recorded| recorded.begin(sink, journal, writer, weak));
    has_begun.then_some(path).ok_or(RecordingError::IsRecording)
}

/// [Dumps](dump) into a new file of this folder. Returns the file.
///
/// # Errors
///
/// There is no flight recorder, or the file cannot be written.
pub fn dump_into<T: Traced>(pool: &T, folder: &Path) -> Result<PathBuf, RecordingError> {
    let recording = flight_recording(pool)?;
    let file = pool.traces().file_in(folder, Reason::Request);
    traces::write::<WriterOf<T>>(&recording, pool.traces().info(), &file)
}

/// Ends the recording of a pool: with all that happened up to this call. `reply` hears on the thread
/// that writes, when the trace and dumps that were under way are whole; it must not block. `false`:
/// there is no recording to end. If `reply` is dropped instead, the
/// [thread has ended](RecordingError::ended).
pub fn end_recording(
    pool: &impl Traced,
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
pub fn dump<T: Traced>(pool: &T, path: &Path) -> Result<(), RecordingError> {
    dump_with(pool, path, File::create)
}

/// The same into a file that the library has named.
pub(super) fn dump_anew<T: Traced>(pool: &T, path: &Path) -> Result<(), RecordingError> {
    dump_with(pool, path, new_file::replace)
}

fn dump_with<'p, T: Traced>(
    pool: &T,
    path: &'p Path,
    create: impl FnOnce(&'p Path) -> io::Result<File>,
) -> Result<(), RecordingError> {
    let recording = flight_recording(pool)?;
    let written = create(path)
        .and_then(|file| WriterOf::<T>::write_flight(&recording, pool.traces().info(), file));
    written.map(drop).map_err(|error| RecordingError::file(path, error))
}

/// The same into any writer, which need not buffer. Gives it back.
///
/// # Errors
///
/// When there is no flight recorder, or those of the writer.
pub fn write<T: Traced, W: io::Write>(pool: &T, sink: W) -> Result<W, RecordingError> {
    let recording = flight_recording(pool)?;
    let written = WriterOf::<T>::write_flight(&recording, pool.traces().info(), sink);
    written.map_err(|error| RecordingError::Writer(Arc::new(error)))
}

fn flight_recording<T: Traced>(pool: &T) -> Result<FlightOf<T>, RecordingError> {
    let recording = pool.locked(|recorded| recorded.flight_recording());
    recording.ok_or(RecordingError::NoFlightRecorder)
}

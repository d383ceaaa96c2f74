//! The end of a recording, and waiting for it.

use std::sync::{Arc, Mutex, PoisonError};

use super::dump::end_recording;
use super::error::RecordingError;
use super::traced::Traced;
use crate::runtime::signal::Signal;

/// Ends the recording and waits until the trace is complete. Without a recording it returns at once. Cancel-safe: the
/// recording ends all the same.
///
/// # Errors
///
/// What kept the trace from being written completely.
pub async fn end(traced: &impl Traced) -> Result<(), RecordingError> {
    let Some(end) = EndOfRecording::begin(traced) else { return Ok(()) };
    let written = end.written.listen();
    match end.take() {
        Some(outcome) => outcome,
        None => {
            written.await;
            end.take().unwrap_or_else(|| Err(RecordingError::ended()))
        }
    }
}

/// As [`end`], and blocks the thread.
///
/// # Errors
///
/// As [`end`].
pub fn end_blocking(traced: &impl Traced) -> Result<(), RecordingError> {
    let Some(end) = EndOfRecording::begin(traced) else { return Ok(()) };
    let written = end.written.listen();
    match end.take() {
        Some(outcome) => outcome,
        None => {
            _ = written.wait(None);
            end.take().unwrap_or_else(|| Err(RecordingError::ended()))
        }
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
    fn begin(traced: &impl Traced) -> Option<Arc<Self>> {
        let end = Arc::new(Self::default());
        let reply = Reply(Arc::clone(&end));
        end_recording(traced, move |outcome| reply.send(outcome)).then_some(end)
    }

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

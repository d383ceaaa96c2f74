//! Messages about recordings, through `tracing`.

use std::path::Path;

use tracing::warn;

use super::error::RecordingError;
use super::traces::Reason;

/// Not of the specification, either: where recordings are concerned.
const TRACES: &str = "cenote::trace";

/// A recording has ended before its time, or a dump is not there.
pub(super) fn recording_failed(error: &RecordingError) {
    warn!(target: TRACES, message = "Trace cannot be written", error = display(error));
}

/// It can be seen how it came to something.
pub(super) fn trace_dumped(reason: Reason, path: &Path) {
    let message = match reason {
        Reason::WaitQueueTimeout => "Trace of the first timeout",
        Reason::Panic => "Trace of a panic",
        Reason::Signal => "Trace that a signal asked for",
    };
    warn!(target: TRACES, message, path = display(path.display()));
}

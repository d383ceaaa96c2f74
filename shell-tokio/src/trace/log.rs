//! Messages about recordings, through `tracing`.

use std::path::Path;

use tracing::warn;

use super::RecordingError;

/// Not of the specification, either: where recordings are concerned.
const TRACES: &str = "cenote::trace";

/// A recording has ended before its time, or a dump is not there.
pub(crate) fn recording_failed(error: &RecordingError) {
    warn!(target: TRACES, message = "Trace cannot be written", error = display(error));
}

/// Something went wrong, and it can be seen how it came to that.
pub(crate) fn trace_dumped(path: &Path) {
    warn!(target: TRACES, message = "Trace of the first timeout", path = display(path.display()));
}

//! Messages about recordings, through `tracing`.

use std::path::Path;

use tracing::warn;

use super::error::RecordingError;
use super::reason::Reason;

/// The target of messages about traces, which the specification does not define.
const TRACES: &str = "cenote::trace";

/// A recording ended early, or a dump could not be written.
pub(super) fn recording_failed(error: &RecordingError) {
    warn!(target: TRACES, message = "Trace cannot be written", error = display(error));
}

/// A dump was written.
pub(super) fn trace_dumped(reason: Reason, path: &Path) {
    let message = match reason {
        Reason::WaitQueueTimeout => "Trace of a timeout",
        Reason::AfterTimeouts => "Trace of timeouts, and of what came after them",
        Reason::Panic => "Trace of a panic",
        Reason::Signal => "Trace that a signal asked for",
        Reason::Request | Reason::Recording => "Trace that was asked for",
    };
    warn!(target: TRACES, message, path = display(path.display()));
}

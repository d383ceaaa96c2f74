//! Tests that do not concern this project, or that no pool could pass, each with the reason.

use std::path::Path;

use super::driver;
use super::format::{Requirement, Test};
use crate::formats::outcome::Verdict;

struct Exception {
    /// The end of the file's path, whether it is JSON or YAML.
    file: &'static str,
    /// How the test's description begins.
    test: &'static str,
    reason: &'static str,
}

/// They are not played: on a machine that is busy, a limit may be noticed so late that they pass.
const NOT_PLAYED: [Exception; 2] = [
    Exception {
        file: "client-side-operations-timeout/tests/command-execution",
        test: "command is not sent if RTT is greater than timeoutMS",
        reason: BACKGROUND_HELLO,
    },
    Exception {
        file: "client-side-operations-timeout/tests/command-execution",
        test: "short-circuit is not enabled with only 1 RTT measurement",
        reason: BACKGROUND_HELLO,
    },
];

/// They have to fail.
const EXCEPTIONS: [Exception; 2] = [
    Exception {
        file: "logging/connection-pool-options",
        test: "waitQueueSize should be included",
        reason: "waitQueueSize is deprecated and must not be implemented",
    },
    Exception {
        file: "logging/connection-pool-options",
        test: "waitQueueMultiple should be included",
        reason: "waitQueueMultiple is deprecated and must not be implemented",
    },
];

const BACKGROUND_HELLO: &str = "waits for a connection of minPoolSize, whose hello the file makes longer than timeoutMS, \
                                which limits it by the specification's section on background connections";

/// An exception that is none any more has to go: it would hide the next failure.
pub(super) fn judge(
    file: &Path,
    test: &Test,
    play: impl FnOnce() -> Result<(), String>,
) -> Verdict {
    if let Some(reason) = &test.skip_reason {
        return Verdict::NotApplicable(format!("the file itself says: {reason}"));
    }
    let wanted = &test.run_on_requirements;
    if !wanted.is_empty() && wanted.iter().all(Requirement::is_too_old) {
        return Verdict::NotApplicable("servers before MongoDB 4.4 are refused".to_owned());
    }
    if let Some(reason) = driver::needed_by(test) {
        return Verdict::NotApplicable(reason);
    }
    if let Some(exception) = listed(&NOT_PLAYED, file, test) {
        return Verdict::NotApplicable(exception.reason.to_owned());
    }
    match (listed(&EXCEPTIONS, file, test), play()) {
        (None, played) => played.into(),
        (Some(exception), Err(_)) => Verdict::NotApplicable(exception.reason.to_owned()),
        (Some(_), Ok(())) => Verdict::Failed("listed as an exception, but it passes".to_owned()),
    }
}

fn listed<'a>(exceptions: &'a [Exception], file: &Path, test: &Test) -> Option<&'a Exception> {
    let path = file.with_extension("");
    exceptions.iter().find(|exception| {
        path.ends_with(exception.file) && test.description.starts_with(exception.test)
    })
}

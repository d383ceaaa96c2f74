//! What the failure of an application's connection means for the monitor.

use super::action::ActionSink;
use super::{Monitor, ServerDescription};
use crate::error::ConnectionError;
use crate::sdam::{Check, ServerVerdict, Verdict};

impl Monitor {
    /// The description first; the embedder clears the pool, because it knows whose connection it
    /// was.
    // SD-06, SD-20
    pub(super) fn application_failed(
        &mut self,
        error: &ConnectionError,
        verdict: Verdict,
        out: &mut impl ActionSink,
    ) {
        match verdict.server {
            ServerVerdict::Keep => {}
            ServerVerdict::Unknown { topology_version } => {
                let unknown = ServerDescription::unknown(error.clone(), topology_version, self.now);
                self.doubted_since.get_or_insert(self.now);
                self.describe(unknown, out);
            }
        }
        match verdict.check {
            Check::Keep => {}
            // SD-29
            Check::Request => {
                self.is_requested = true;
                self.run_due_check(out);
            }
            Check::Cancel => self.cancel_check(error, out),
        }
    }
}

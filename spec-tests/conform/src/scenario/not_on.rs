//! Targets that cannot play a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::report::Verdict;

/// The targets that cannot play a file, each with the reason: `notOn` in the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct NotOn(BTreeMap<String, String>);

impl NotOn {
    /// Whether the target is listed.
    #[must_use]
    pub fn contains(&self, target: &str) -> bool {
        self.0.contains_key(target)
    }

    /// The verdict on a target. A listed target must fail or be unable to play the file: an outdated
    /// entry would hide the next failure.
    #[must_use]
    pub fn verdict(&self, target: &str, verdict: Verdict) -> Verdict {
        match (self.0.get(target), verdict) {
            (None, verdict) => verdict,
            (Some(_), Verdict::Passed) => {
                Verdict::Failed("listed in notOn, but it passes".to_owned())
            }
            (Some(reason), Verdict::Failed(_) | Verdict::NotApplicable(_)) => {
                Verdict::NotApplicable(reason.clone())
            }
        }
    }
}

//! Targets that cannot play a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::document::nested::wrong_at;
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

    /// Checks that every target is one of `known` and has a reason, and that at least one of `known` can
    /// play the file.
    ///
    /// # Errors
    ///
    /// The first target that is wrong, with its place below `notOn`.
    pub fn check_names(&self, known: &[&str]) -> Result<(), String> {
        if let Some(name) = self.0.keys().find(|name| !known.contains(&name.as_str())) {
            let reason = format!("unknown target, known are {}", known.join(", "));
            return Err(wrong_at(name, reason));
        }
        self.check()?;
        if self.0.len() == known.len() {
            return Err("it has to be played somewhere".to_owned());
        }
        Ok(())
    }

    /// Checks that every target has a reason.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.0.iter().find(|(_, reason)| reason.is_empty()) {
            Some((name, _)) => {
                Err(wrong_at(name, "for each target where it is not played, say why"))
            }
            None => Ok(()),
        }
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

//! Targets on which a file of ours cannot be played.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::document::inner::wrong_at;
use super::{Target, Verdict};

/// Each with the reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub(super) struct NotOn(BTreeMap<Target, String>);

impl NotOn {
    pub(super) fn contains(&self, target: Target) -> bool {
        self.0.contains_key(&target)
    }

    /// What became of a file there. A reason not to play it that is none any more has to go: it would
    /// hide the next failure.
    pub(super) fn verdict(&self, target: Target, played: Result<(), String>) -> Verdict {
        match (self.0.get(&target), played) {
            (None, played) => played.into(),
            (Some(reason), Err(_)) => Verdict::NotApplicable(reason.clone()),
            (Some(_), Ok(())) => Verdict::Failed("listed in notOn, but it passes".to_owned()),
        }
    }
}

// By hand: keys that are no texts have no place in what serde says of them.
impl TryFrom<BTreeMap<String, String>> for NotOn {
    type Error = String;

    fn try_from(reasons: BTreeMap<String, String>) -> Result<Self, String> {
        let mut not_on = BTreeMap::new();
        for (name, reason) in reasons {
            let target = Target::ALL.into_iter().find(|target| target.name() == name);
            let known = || Target::ALL.map(Target::name).join(", ");
            let target = target
                .ok_or_else(|| wrong_at(&name, format!("unknown target, known are {}", known())))?;
            if reason.is_empty() {
                return Err(wrong_at(&name, "for each target where it is not played, say why"));
            }
            not_on.insert(target, reason);
        }
        if not_on.len() == Target::ALL.len() {
            return Err("it has to be played somewhere".to_owned());
        }
        Ok(Self(not_on))
    }
}

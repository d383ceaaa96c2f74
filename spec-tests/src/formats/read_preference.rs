//! Read preferences as test files have them.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Bson, Document, doc};
use cenote_core::client::ReadPreference;
use cenote_core::uri::ReadPreferenceMode;
use serde::Deserialize;

/// The mode in any case, tags and a limit of staleness.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preference {
    mode: Option<String>,
    #[serde(default, alias = "tagSets")]
    tag_sets: Vec<BTreeMap<String, String>>,
    #[serde(rename = "maxStalenessSeconds")]
    max_staleness_seconds: Option<u64>,
}

impl Preference {
    /// # Errors
    ///
    /// A mode that there is not.
    pub(super) fn read(&self) -> Result<ReadPreference, String> {
        let Self { mode, tag_sets, max_staleness_seconds } = self;
        let mode = mode.as_deref().unwrap_or("primary");
        let known = [
            ReadPreferenceMode::Primary,
            ReadPreferenceMode::PrimaryPreferred,
            ReadPreferenceMode::Secondary,
            ReadPreferenceMode::SecondaryPreferred,
            ReadPreferenceMode::Nearest,
        ];
        let found = known.into_iter().find(|known| known.name().eq_ignore_ascii_case(mode));
        let mut preference =
            ReadPreference::of_mode(found.ok_or_else(|| format!("mode: no mode {mode}"))?);
        preference.tag_sets.clone_from(tag_sets);
        preference.max_staleness = max_staleness_seconds.map(Duration::from_secs);
        Ok(preference)
    }

    /// As a command has it: `$readPreference`.
    ///
    /// # Errors
    ///
    /// A mode that there is not.
    pub(super) fn document(&self) -> Result<Document, String> {
        let ReadPreference { mode, tag_sets, max_staleness, .. } = self.read()?;
        let mut document = doc! { "mode": mode.name() };
        if !tag_sets.is_empty() {
            let tags = |tags: &BTreeMap<String, String>| {
                tags.iter().map(|(name, value)| (name.clone(), value.into())).collect()
            };
            let sets: Vec<Document> = tag_sets.iter().map(tags).collect();
            document.insert("tags", sets);
        }
        if let Some(limit) = max_staleness {
            let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
            document.insert("maxStalenessSeconds", Bson::Int64(seconds));
        }
        Ok(document)
    }
}

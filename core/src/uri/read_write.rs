use std::{collections::BTreeMap, time::Duration};

use super::{
    Expected, UriError,
    query::{INTEGER_MAX, Pair, Query, whole_number},
};

/// Read preference, read concern and write concern.
///
/// A pool has no use for these; they are read so that the connection string of an application is
/// understood as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadWriteOptions {
    /// `readConcernLevel`: any name, for the server to judge.
    pub read_concern_level: Option<String>,
    /// `w`: which members must have a write.
    pub write_concern: Option<WriteConcern>,
    /// `wTimeoutMS`: how long to wait for them; 0 is without limit.
    pub write_timeout: Option<Duration>,
    /// `journal`: whether they have to have it on disk.
    pub journal: Option<bool>,
    /// `readPreference`.
    pub read_preference: Option<ReadPreferenceMode>,
    /// `readPreferenceTags`: sets of tags to try in this order; an empty set fits every server. Not for
    /// [`Primary`](ReadPreferenceMode::Primary).
    pub read_preference_tags: Vec<BTreeMap<String, String>>,
    /// `maxStalenessSeconds`: how far behind a secondary may be; at least 90 s. Unset, and set to
    /// −1, is without limit. Not for [`Primary`](ReadPreferenceMode::Primary).
    pub max_staleness: Option<Duration>,
}

/// Which members must have a write before it counts as done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteConcern {
    /// A number of members; 0 asks for no acknowledgement.
    Members(u32),
    /// `majority`, or a name from the replica set's configuration.
    Named(String),
}

/// Which members are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReadPreferenceMode {
    /// The primary only.
    Primary,
    /// The primary if there is one, otherwise a secondary.
    PrimaryPreferred,
    /// A secondary only.
    Secondary,
    /// A secondary if there is one, otherwise the primary.
    SecondaryPreferred,
    /// Whichever is near.
    Nearest,
}

impl ReadPreferenceMode {
    const ALL: [Self; 5] = [
        Self::Primary,
        Self::PrimaryPreferred,
        Self::Secondary,
        Self::SecondaryPreferred,
        Self::Nearest,
    ];
    const NAMES: [&'static str; 5] =
        ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];

    /// As a connection string writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl ReadWriteOptions {
    pub(super) fn read(query: &mut Query) -> Result<Self, UriError> {
        query.rename("wtimeout", "wTimeoutMS");
        query.rename("j", "journal");
        let read = Self {
            read_concern_level: query.text("readConcernLevel"),
            write_concern: write_concern(query),
            write_timeout: query.millis("wTimeoutMS", 0),
            journal: query.boolean("journal"),
            read_preference: query.word(
                "readPreference",
                &ReadPreferenceMode::NAMES,
                &ReadPreferenceMode::ALL,
            ),
            read_preference_tags: tag_sets(query),
            max_staleness: max_staleness(query),
        };
        read.check_primary().map(|()| read)
    }

    fn check_primary(&self) -> Result<(), UriError> {
        if self.read_preference.unwrap_or(ReadPreferenceMode::Primary)
            != ReadPreferenceMode::Primary
        {
            return Ok(());
        }
        if self.max_staleness.is_some() {
            return Err(UriError::OfPrimary { option: MAX_STALENESS });
        }
        if self.read_preference_tags.iter().any(|tags| !tags.is_empty()) {
            return Err(UriError::OfPrimary { option: TAGS });
        }
        Ok(())
    }
}

const TAGS: &str = "readPreferenceTags";
const MAX_STALENESS: &str = "maxStalenessSeconds";

fn write_concern(query: &mut Query) -> Option<WriteConcern> {
    let pair = query.take("w")?;
    match whole_number(pair.text()) {
        None if !pair.text().is_empty() => Some(WriteConcern::Named(pair.text().to_owned())),
        Some(number) if (0..=i64::from(INTEGER_MAX)).contains(&number) => {
            u32::try_from(number).ok().map(WriteConcern::Members)
        }
        None | Some(_) => {
            query.invalid("w", &pair, Expected::WriteConcern);
            None
        }
    }
}

/// The one option that is a list because it is given several times.
fn tag_sets(query: &mut Query) -> Vec<BTreeMap<String, String>> {
    let mut sets = Vec::new();
    for pair in query.take_all(TAGS) {
        match tag_set(&pair) {
            Some(set) => sets.push(set),
            None => query.invalid(TAGS, &pair, Expected::Pairs),
        }
    }
    sets
}

// OP-51
fn tag_set(pair: &Pair) -> Option<BTreeMap<String, String>> {
    if pair.text().is_empty() {
        return Some(BTreeMap::new());
    }
    let tag = |entry: &str| {
        let (name, value) = entry.split_once(':')?;
        Some((name.to_owned(), value.to_owned()))
    };
    pair.text().split(',').map(tag).collect()
}

fn max_staleness(query: &mut Query) -> Option<Duration> {
    let pair = query.take(MAX_STALENESS)?;
    match whole_number(pair.text()) {
        Some(-1) => None,
        Some(seconds) if (90..=i64::from(INTEGER_MAX)).contains(&seconds) => {
            Some(Duration::from_secs(seconds.unsigned_abs()))
        }
        None | Some(_) => {
            let expected = Expected::Integer { min: 90, max: INTEGER_MAX.into() };
            query.invalid(MAX_STALENESS, &pair, expected);
            None
        }
    }
}

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;

use thiserror::Error;

use crate::uri::{ReadPreferenceMode, ReadWriteOptions};

/// Which members of a replica set are read from. Other deployments ignore it.
///
/// ```
/// use cenote_core::client::ReadPreference;
/// use cenote_core::uri::{ConnectionString, ReadPreferenceMode};
///
/// let uri = "mongodb://db/?readPreference=secondary&readPreferenceTags=dc:ny";
/// let uri = ConnectionString::parse(uri)?;
/// let preference = ReadPreference::new(&uri.read_write);
/// assert_eq!(preference.mode, ReadPreferenceMode::Secondary);
/// assert_eq!(preference.tag_sets[0]["dc"], "ny");
/// # Ok::<(), cenote_core::uri::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadPreference {
    /// Primary, secondaries, or both.
    pub mode: ReadPreferenceMode,
    /// Sets of tags to try in this order: the first set that secondaries have selects those. Without any, and with an
    /// empty one, all fit.
    pub tag_sets: Vec<BTreeMap<String, String>>,
    /// How far behind a secondary may be; default is without limit.
    pub max_staleness: Option<Duration>,
}

/// Why a read preference selects no server, whichever there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidReadPreference {
    /// Tags for the primary.
    #[error("the read preference `primary` takes no tags: leave them out, or choose another mode")]
    TagsOfPrimary,
    /// A limit of staleness for the primary.
    #[error(
        "the read preference `primary` takes no maxStalenessSeconds: leave it out, or choose another mode"
    )]
    StalenessOfPrimary,
    /// The staleness of secondaries cannot be told so exactly.
    #[error(
        "maxStalenessSeconds is {given:?}, which is less than {least:?}: set at least 90, and at least \
         heartbeatFrequencyMS and 10 seconds"
    )]
    StalenessTooSmall {
        /// As it was set.
        given: Duration,
        /// The least that can be told.
        least: Duration,
    },
}

impl ReadPreference {
    /// The primary alone: what writes need, too.
    pub const PRIMARY: Self = Self::of_mode(ReadPreferenceMode::Primary);

    /// How often an idle primary writes, so that its secondaries can tell how far behind they are.
    const IDLE_WRITE_PERIOD: Duration = Duration::from_secs(10);
    // SS-06
    const LEAST_STALENESS: Duration = Duration::from_secs(90);

    /// That of a connection string.
    #[must_use]
    pub fn new(options: &ReadWriteOptions) -> Self {
        Self {
            mode: options.read_preference.unwrap_or(ReadPreferenceMode::Primary),
            tag_sets: options.read_preference_tags.clone(),
            max_staleness: options.max_staleness,
        }
    }

    /// All members that the mode allows.
    #[must_use]
    pub const fn of_mode(mode: ReadPreferenceMode) -> Self {
        Self { mode, tag_sets: Vec::new(), max_staleness: None }
    }

    /// Whether it can be followed in a replica set whose servers are checked so often.
    ///
    /// # Errors
    ///
    /// The mode `primary` has tags or a limit of staleness, or the limit is too small.
    // SS-03
    pub fn validate(&self, heartbeat_frequency: Duration) -> Result<(), InvalidReadPreference> {
        let is_primary = self.mode == ReadPreferenceMode::Primary;
        if is_primary && self.tag_sets.iter().any(|tags| !tags.is_empty()) {
            return Err(InvalidReadPreference::TagsOfPrimary);
        }
        let Some(given) = self.max_staleness else { return Ok(()) };
        if is_primary {
            return Err(InvalidReadPreference::StalenessOfPrimary);
        }
        let heartbeat = heartbeat_frequency.saturating_add(Self::IDLE_WRITE_PERIOD);
        let least = Self::LEAST_STALENESS.max(heartbeat);
        if given < least {
            return Err(InvalidReadPreference::StalenessTooSmall { given, least });
        }
        Ok(())
    }
}

/// As in `secondaryPreferred {dc: ny} {}, 90s stale at most`.
impl fmt::Display for ReadPreference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.name())?;
        for tags in &self.tag_sets {
            let tags: Vec<_> =
                tags.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            write!(f, " {{{}}}", tags.join(", "))?;
        }
        match self.max_staleness {
            Some(limit) => write!(f, ", {limit:?} stale at most"),
            None => Ok(()),
        }
    }
}

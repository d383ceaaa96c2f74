//! Points in time, as the machine sees them: numbers that the shell hands in.

use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

/// A point in time, in nanoseconds since an origin that the shell chooses.
///
/// The machine never reads a clock. A shell usually takes the creation of the pool as the origin
/// and a monotonic clock; a simulation takes 0 and counts. One `u64` of nanoseconds reaches 584
/// years; what lies beyond saturates. An `Option<Instant>` is no larger than an `Instant`.
///
/// ```
/// use cenote_core::pool::Instant;
/// use core::time::Duration;
///
/// let start = Instant::ORIGIN;
/// let later = start + Duration::from_millis(5);
/// assert_eq!(later.as_nanos(), 5_000_000);
/// assert_eq!(later.saturating_since(start), Duration::from_millis(5));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
// DU-01
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    // One more than the nanoseconds, so that zero is free to mean `None`.
    nanos_plus_one: NonZeroU64,
}

impl Instant {
    /// The origin that the shell chose: 0 ns.
    pub const ORIGIN: Self = Self { nanos_plus_one: NonZeroU64::MIN };

    /// The point `nanos` nanoseconds after the origin; `u64::MAX` counts as one less.
    pub const fn from_nanos(nanos: u64) -> Self {
        match NonZeroU64::new(nanos.saturating_add(1)) {
            Some(nanos_plus_one) => Self { nanos_plus_one },
            None => Self::ORIGIN,
        }
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.nanos_plus_one.get() - 1
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.as_nanos().saturating_sub(earlier.as_nanos()))
    }

    /// The point `nanos` nanoseconds later, or the end of time.
    pub(super) const fn after(self, nanos: u64) -> Self {
        Self { nanos_plus_one: self.nanos_plus_one.saturating_add(nanos) }
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.after(nanos(duration))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Seconds since the origin with nine decimals, as in `12.000000500s`.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.as_nanos();
        write!(f, "{}.{:09}s", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

/// Whole nanoseconds of a duration, at most `u64::MAX`.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

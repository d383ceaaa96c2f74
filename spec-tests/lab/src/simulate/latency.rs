//! How long simulated operations take.

use std::fmt;
use std::time::Duration;

use cenote_replay::random::SplitMix;

/// A distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Always this long.
    Fixed(Duration),
    /// Uniform between zero and twice this duration.
    Uniform(Duration),
    /// Uniform up to this duration, with a long tail.
    LongTailed(Duration),
}

impl Latency {
    pub(super) fn draw(self, random: &mut SplitMix) -> Duration {
        let nanos = match self {
            Self::Fixed(time) => return time,
            Self::Uniform(time) => random.below(2 * nanos(time) + 1),
            // 1 in 16 takes up to 16 times as long, 1 in 16 of those again, and 1 in 16 of those again.
            Self::LongTailed(time) => {
                let tail = 1_u64 << (4 * (random.number().trailing_zeros() / 4).min(3));
                random.below(nanos(time) + 1) * tail
            }
        };
        Duration::from_nanos(nanos)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => write!(f, "{time:?}"),
            Self::Uniform(time) => write!(f, "about {time:?}"),
            Self::LongTailed(time) => write!(f, "up to {time:?}, with a long tail"),
        }
    }
}

//! How long simulated operations take.

use std::fmt;
use std::time::Duration;

use crate::replay::random::SplitMix;

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

impl SplitMix {
    pub(super) fn time(&mut self, latency: Latency) -> Duration {
        let nanos = match latency {
            Latency::Fixed(time) => return time,
            Latency::Uniform(time) => self.below(2 * nanos(time) + 1),
            // 1 in 16 takes up to 16 times as long, 1 in 16 of those again, and 1 in 16 of those again.
            Latency::LongTailed(time) => {
                let tail = 1_u64 << (4 * (self.number().trailing_zeros() / 4).min(3));
                self.below(nanos(time) + 1) * tail
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

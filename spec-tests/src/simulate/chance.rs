//! All chance of a world, from one seed.

use std::fmt;
use std::time::Duration;

use crate::replay::random::SplitMix;

/// Draws. The same seed draws the same.
#[derive(Clone, Debug)]
pub(super) struct Chance(SplitMix);

impl Chance {
    pub(super) const fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// Below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// From `least` to `most`.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub(super) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Once in so many times; 0 is never.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        times != 0 && self.below(times) == 0
    }

    /// One of them; `None` of nothing.
    pub(super) fn pick<T: Copy>(&mut self, those: &[T]) -> Option<T> {
        if those.is_empty() {
            return None;
        }
        let place = self.below(those.len() as u64);
        those.get(usize::try_from(place).ok()?).copied()
    }

    pub(super) fn time(&mut self, latency: Latency) -> Duration {
        let nanos = match latency {
            Latency::Fixed(time) => return time,
            Latency::Even(time) => self.below(2 * nanos(time) + 1),
            // One in sixteen takes up to sixteen times as long, one in sixteen of those again, and one
            // in sixteen of those once more.
            Latency::Tailed(time) => {
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

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// This long.
    Fixed(Duration),
    /// From nothing to twice as long.
    Even(Duration),
    /// Up to this long, and some very much longer.
    Tailed(Duration),
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => write!(f, "{time:?}"),
            Self::Even(time) => write!(f, "about {time:?}"),
            Self::Tailed(time) => write!(f, "up to {time:?}, some much longer"),
        }
    }
}

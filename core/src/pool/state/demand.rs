//! How many connections a pool with a predictive minimum has needed lately.

use crate::pool::time::Instant;

/// For how long the demand is averaged, at least: 250 ms, in nanoseconds.
const WINDOW: u64 = 250_000_000;

/// The demand of a pool with a [predictive minimum](super::super::PoolOptions::predictive_min_pool_size): connections
/// in use, and requests without an outcome, over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// When the window began that is measured now.
    pub since: Instant,
    /// The sum of the demand in it, counted once for each nanosecond.
    pub sum: u64,
    /// How many connections the last window asks for.
    pub predicted: u32,
}

impl Demand {
    pub(in crate::pool) const fn new(since: Instant) -> Self {
        Self { since, sum: 0, predicted: 0 }
    }

    /// So much was needed from `from` to `to`. Ends the window if it is long enough.
    pub(in crate::pool) fn observe(&mut self, needed: u64, from: Instant, to: Instant) {
        let time = to.as_nanos() - from.as_nanos();
        self.sum = self.sum.saturating_add(needed.saturating_mul(time));
        let length = to.as_nanos() - self.since.as_nanos();
        if length >= WINDOW {
            self.predicted = predict(self.sum, length);
            (self.since, self.sum) = (to, 0);
        }
    }
}

/// The average, which is the rate of requests times the time of a use (Little's law), and four times its square root:
/// if requests come independently of each other, more are hardly ever needed at once.
fn predict(sum: u64, length: u64) -> u32 {
    let thousandths = u128::from(sum) * 1000 / u128::from(length);
    let margin = (16_000 * thousandths).isqrt();
    u32::try_from((thousandths + margin).div_ceil(1000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{WINDOW, predict};

    #[test]
    fn the_margin_is_four_times_the_square_root() {
        let of = |thousandths| predict(thousandths * (WINDOW / 1000), WINDOW);
        let expected = [(0, 0), (1, 1), (250, 3), (1_000, 5), (10_000, 23), (100_000, 140)];
        for (thousandths, connections) in expected {
            assert_eq!(of(thousandths), connections, "on average {thousandths} thousandths");
        }
        assert_eq!(predict(u64::MAX, 1), u32::MAX);
    }
}

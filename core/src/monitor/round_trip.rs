//! Round-trip times: an average that forgets, and the least of the last ones.

use core::time::Duration;
use std::collections::VecDeque;

/// How long a server takes to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The exponentially weighted moving average: a new time counts one fifth.
    pub average: Duration,
    /// The least of the last ten; zero until there are two.
    pub minimum: Duration,
}

/// The round-trip times since the server was last Unknown to its monitor.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips {
    average: Option<Duration>,
    last: VecDeque<Duration>,
}

impl RoundTrips {
    const KEPT: usize = 10;
    const NEEDED_FOR_MINIMUM: usize = 2;

    pub(super) fn add(&mut self, sample: Duration) {
        self.average = Some(match self.average {
            None => sample,
            Some(average) => weigh(average, sample),
        });
        if self.last.len() == Self::KEPT {
            self.last.pop_front();
        }
        self.last.push_back(sample);
    }

    /// Old measurements do not predict new ones.
    // SM-09
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    // SM-10
    pub(super) fn get(&self) -> Option<RoundTrip> {
        let enough = self.last.len() >= Self::NEEDED_FOR_MINIMUM;
        let minimum = self.last.iter().min().copied().filter(|_| enough).unwrap_or_default();
        self.average.map(|average| RoundTrip { average, minimum })
    }
}

/// In whole nanoseconds, so that every machine gets the same. No sum overflows: both parts are of
/// less than a whole `Duration`.
// SM-09
fn weigh(average: Duration, sample: Duration) -> Duration {
    sample / 5 + (average - average / 5)
}

#[cfg(test)]
mod tests {
    use super::{RoundTrip, RoundTrips};
    use core::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    fn of(samples: &[u32]) -> Option<RoundTrip> {
        let mut trips = RoundTrips::default();
        samples.iter().for_each(|&sample| trips.add(MS * sample));
        trips.get()
    }

    // SM-09
    #[test]
    fn a_new_time_counts_one_fifth() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[10]).unwrap().average, MS * 10);
        assert_eq!(of(&[10, 20]).unwrap().average, MS * 12);
        assert_eq!(of(&[10, 20, 2]).unwrap().average, MS * 10);
    }

    // SM-10
    #[test]
    fn the_least_of_the_last_ten_once_there_are_two() {
        assert_eq!(of(&[7]).unwrap().minimum, Duration::ZERO);
        assert_eq!(of(&[7, 9]).unwrap().minimum, MS * 7);
        let mut samples = vec![1];
        samples.extend([9; 9]);
        assert_eq!(of(&samples).unwrap().minimum, MS);
        samples.push(8);
        assert_eq!(of(&samples).unwrap().minimum, MS * 8);
    }

    #[test]
    fn the_longest_times_do_not_overflow() {
        let mut trips = RoundTrips::default();
        (0..20).for_each(|_| trips.add(Duration::MAX));
        assert!(trips.get().unwrap().average <= Duration::MAX);
        trips.reset();
        assert_eq!(trips.get(), None);
    }
}

//! Numbers about many things in a bounded memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::pool::Instant;

/// A sample of a sequence: all of it up to a million items, then every second one, every fourth, …
#[derive(Clone, Debug)]
pub(super) struct Sample<T> {
    items: Vec<T>,
    stride: u64,
    seen: u64,
}

impl<T> Default for Sample<T> {
    fn default() -> Self {
        Self { items: Vec::new(), stride: 1, seen: 0 }
    }
}

impl<T> Sample<T> {
    pub(super) fn add(&mut self, item: T) {
        if self.seen.is_multiple_of(self.stride) {
            if self.items.len() == SAMPLE_MAX {
                let mut index = 0;
                self.items.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            self.items.push(item);
        }
        self.seen += 1;
    }

    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    /// How many items of the sequence one of the sample stands for.
    pub(super) const fn stride(&self) -> u64 {
        self.stride
    }
}

const SAMPLE_MAX: usize = 1 << 20;

/// The items with the longest durations.
#[derive(Clone, Debug)]
pub(super) struct Longest<T> {
    /// Of two equally long ones, the earlier counts as longer.
    items: BTreeMap<(Duration, Reverse<u64>), T>,
    capacity: usize,
    seen: u64,
}

impl<T> Longest<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { items: BTreeMap::new(), capacity, seen: 0 }
    }

    /// Creates the item only if it is among the longest.
    pub(super) fn add(&mut self, duration: Duration, item: impl FnOnce() -> T) {
        let rank = (duration, Reverse(self.seen));
        self.seen += 1;
        if self.items.len() >= self.capacity {
            if self.items.first_key_value().is_none_or(|(shortest, _)| *shortest >= rank) {
                return;
            }
            self.items.pop_first();
        }
        self.items.insert(rank, item());
    }

    pub(super) fn items_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.values_mut()
    }

    /// The longest first.
    pub(super) fn take_sorted(&mut self) -> Vec<T> {
        std::mem::take(&mut self.items).into_values().rev().collect()
    }
}

/// Durations in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Quantiles(Vec<Duration>);

impl Quantiles {
    pub(super) fn of(durations: impl Iterator<Item = Duration>) -> Self {
        let mut sorted: Vec<_> = durations.collect();
        sorted.sort_unstable();
        Self(sorted)
    }

    pub(super) fn median(&self) -> Option<Duration> {
        self.at(50)
    }

    /// At least this percentage of the durations are not longer.
    pub(super) fn at(&self, percent: usize) -> Option<Duration> {
        let index = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(index).copied()
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn longest(&self) -> Option<Duration> {
        self.0.last().copied()
    }
}

/// Disjoint intervals in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals(Vec<(Instant, Instant)>);

impl Intervals {
    /// The union of these intervals.
    pub(super) fn of(intervals: &[(Instant, Instant)]) -> Self {
        let mut sorted = intervals.to_vec();
        sorted.sort_unstable();
        let mut union: Vec<(Instant, Instant)> = Vec::new();
        for (from, to) in sorted {
            match union.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                Some(_) | None => union.push((from, to)),
            }
        }
        Self(union)
    }

    pub(super) fn contains(&self, at: Instant) -> bool {
        let after = self.0.partition_point(|&(from, _)| from <= at);
        after > 0 && at <= self.0[after - 1].1
    }

    /// How much of the time from one moment to another lies in them.
    pub(super) fn overlap(&self, from: Instant, to: Instant) -> Duration {
        let first = self.0.partition_point(|&(_, end)| end <= from);
        let inside = self.0[first..].iter().take_while(|&&(begin, _)| begin < to);
        inside.map(|&(begin, end)| end.min(to).saturating_since(begin.max(from))).sum()
    }

    pub(super) fn total(&self) -> Duration {
        self.0.iter().map(|&(from, to)| to.saturating_since(from)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_bounded_and_covers_everything() {
        let mut sample = Sample::default();
        let many = 5 * SAMPLE_MAX as u64;
        (0..many).for_each(|item| sample.add(item));
        assert_eq!(sample.stride(), 8);
        let expected: Vec<_> = (0..many).step_by(8).collect();
        assert_eq!(sample.items(), expected);
    }

    #[test]
    fn the_longest_are_kept_in_order() {
        let mut longest = Longest::new(3);
        for (item, millis) in [(1, 5), (2, 9), (3, 5), (4, 1), (5, 9), (6, 7)] {
            longest.add(Duration::from_millis(millis), || item);
        }
        assert_eq!(longest.take_sorted(), [2, 5, 6]);
        let mut none = Longest::new(0);
        none.add(Duration::ZERO, || 1);
        assert!(none.take_sorted().is_empty());
    }

    #[test]
    fn quantiles_and_intervals() {
        let quantiles = Quantiles::of((1..=100).rev().map(Duration::from_millis));
        assert_eq!(quantiles.median(), Some(Duration::from_millis(50)));
        assert_eq!(quantiles.at(99), Some(Duration::from_millis(99)));
        assert_eq!((quantiles.count(), Quantiles::default().median()), (100, None));
        let at = Instant::from_nanos;
        let intervals = Intervals::of(&[(at(7), at(9)), (at(1), at(3)), (at(2), at(5))]);
        let inside: Vec<_> = (0..=10).filter(|&nanos| intervals.contains(at(nanos))).collect();
        assert_eq!(inside, [1, 2, 3, 4, 5, 7, 8, 9]);
        assert_eq!(intervals.total(), Duration::from_nanos(6));
        let overlaps = [(0, 10), (2, 8), (5, 7), (3, 4)];
        let overlaps = overlaps.map(|(from, to)| intervals.overlap(at(from), at(to)).as_nanos());
        assert_eq!(overlaps, [6, 4, 0, 1]);
    }
}

//! How long callers wait.

use std::time::Duration;

use super::request::{Fate, Request};
use super::workload::Workload;
use crate::random::SplitMix;

/// How long callers wait until they cancel. Those that were served did not show it: each would have waited for longer. (The
/// estimate of Kaplan and Meier; beyond the longest wait of the trace, at the rate since the first one that cancelled.)
#[derive(Default)]
pub(super) struct Patience {
    /// The times after which callers cancelled, ascending, and the part of the callers that waits for longer.
    cancelled: Vec<(Duration, f64)>,
    /// The longest wait, and the time that callers wait on average until one cancels.
    rest: (Duration, Duration),
}

impl Patience {
    pub(super) fn of(workload: &Workload) -> Self {
        let cancelled = |request: &Request| request.fate == Fate::Cancelled;
        if !workload.counted().iter().any(cancelled) {
            return Self::default();
        }
        let mut waits: Vec<_> = workload
            .counted()
            .iter()
            .map(|request| (request.wait(), !cancelled(request)))
            .collect();
        waits.sort_unstable();
        let mut longer = 1.0;
        let mut cancelled = Vec::new();
        for (place, &(wait, is_censored)) in waits.iter().enumerate() {
            if !is_censored {
                let left = (waits.len() - place) as f64;
                longer *= 1.0 - 1.0 / left;
                cancelled.push((wait, longer));
            }
        }
        let longest = waits.last().map_or(Duration::ZERO, |&(wait, _)| wait);
        let first = cancelled.first().map_or(longest, |&(after, _)| after);
        let waited = waits.iter().map(|&(wait, _)| wait.saturating_sub(first).as_secs_f64());
        let mean = waited.sum::<f64>() / cancelled.len().max(1) as f64;
        Self { cancelled, rest: (longest, Duration::from_secs_f64(mean)) }
    }

    /// Whether no caller is known to cancel.
    pub(super) fn is_unknown(&self) -> bool {
        self.cancelled.is_empty()
    }

    /// The patience of a caller that has waited for this long; `None` if no caller is known to cancel.
    pub(super) fn beyond(&self, waited: Duration, random: &mut SplitMix) -> Option<Duration> {
        if self.cancelled.is_empty() {
            return None;
        }
        let from = self.cancelled.partition_point(|&(after, _)| after <= waited);
        let now = if from == 0 { 1.0 } else { self.cancelled[from - 1].1 };
        let rest = &self.cancelled[from..];
        let drawn = random.part() * now;
        let place = rest.partition_point(|&(_, longer)| longer > drawn);
        let known = rest.get(place).map(|&(after, _)| after);
        known.or_else(|| {
            let (longest, mean) = self.rest;
            let more = -(1.0 - random.part()).ln() * mean.as_secs_f64();
            Some(longest.max(waited) + Duration::from_secs_f64(more))
        })
    }
}

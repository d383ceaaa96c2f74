//! A request of a trace, and what requests do in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;
use std::num::NonZeroU32;
use std::time::Duration;

use cenote_core::pool::{Instant, Purpose};

/// A request of a trace, in 32 bytes, because a long trace has millions. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) asked: Instant,
    wait: u64,
    used: u64,
    limit: Option<NonZeroU32>,
    pub(crate) fate: Fate,
    pub(crate) purpose: Purpose,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was served, and its connection was checked in.
    Served,
    /// It was served, and held its connection at the end.
    Held,
    /// Its caller cancelled.
    Cancelled,
    /// It failed otherwise.
    Failed,
    /// It was waiting at the end.
    Waiting,
}

impl Request {
    /// One without an outcome.
    pub(super) fn new(asked: Instant, limit: Option<NonZeroU32>, purpose: Purpose) -> Self {
        Self { asked, wait: 0, used: 0, limit, fate: Fate::Waiting, purpose }
    }

    /// How long it waited for its outcome; at least, if it has none.
    pub(crate) const fn wait(&self) -> Duration {
        Duration::from_nanos(self.wait)
    }

    pub(super) fn answer(&mut self, wait: Duration, fate: Fate) {
        (self.wait, self.fate) = (nanos(wait), fate);
    }

    /// How long it used its connection; so far, if it held one at the end.
    pub(super) const fn used(&self) -> Duration {
        Duration::from_nanos(self.used)
    }

    pub(super) fn hold(&mut self, used: Duration, fate: Fate) {
        (self.used, self.fate) = (nanos(used), fate);
    }

    /// When it was served or failed; the end of the trace if neither happened.
    pub(crate) fn answered(&self) -> Instant {
        self.asked + self.wait()
    }

    /// When its caller could make the next one; `None` if that was not before the end.
    pub(crate) fn ended(&self) -> Option<Instant> {
        match self.fate {
            Fate::Served => Some(self.answered() + self.used()),
            Fate::Cancelled | Fate::Failed => Some(self.answered()),
            Fate::Held | Fate::Waiting => None,
        }
    }

    pub(crate) const fn was_served(&self) -> bool {
        matches!(self.fate, Fate::Served | Fate::Held)
    }

    /// What is left of it at a time during its wait or its use.
    pub(super) fn begin_at(&mut self, start: Instant, limits: &mut Limits) {
        let passed = start.saturating_since(self.asked);
        let limit = limits.of(self).map(|limit| limit.saturating_sub(passed));
        self.limit = limits.add(limit);
        self.used = self.used.saturating_sub(nanos(passed.saturating_sub(self.wait())));
        self.wait = self.wait.saturating_sub(nanos(passed));
        self.asked = start;
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The deadlines of callers, as the times that they may wait: few, or one for each request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits(Vec<u64>);

impl Limits {
    pub(super) fn of(&self, request: &Request) -> Option<Duration> {
        request.limit.map(|place| Duration::from_nanos(self.0[place.get() as usize - 1]))
    }

    pub(super) fn add(&mut self, limit: Option<Duration>) -> Option<NonZeroU32> {
        let limit = nanos(limit?);
        if self.0.last() != Some(&limit) {
            self.0.push(limit);
        }
        NonZeroU32::new(self.0.len() as u32)
    }
}

/// What requests do, in the order of time: `of` each, some times from when it was made on. What is outstanding is held, and
/// no more.
pub(super) fn in_order<'a, T: Ord + 'a, const N: usize>(
    requests: &'a [Request],
    of: impl Fn(u32, &Request) -> [Option<(Instant, T)>; N] + 'a,
) -> impl Iterator<Item = (Instant, T)> + 'a {
    let mut requests = (0..).zip(requests).peekable();
    let mut outstanding = BinaryHeap::new();
    iter::from_fn(move || {
        let first = |all: &BinaryHeap<Reverse<(Instant, T)>>| all.peek().map(|it| it.0.0);
        while let Some((number, request)) =
            requests.next_if(|(_, it)| first(&outstanding).is_none_or(|first| it.asked <= first))
        {
            outstanding.extend(of(number, request).into_iter().flatten().map(Reverse));
        }
        outstanding.pop().map(|Reverse(item)| item)
    })
}

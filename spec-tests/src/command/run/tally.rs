use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::arguments::Arguments;
use super::latency::{Latencies, Quantiles};
use super::pause::Pause;
use super::timeline::Timeline;

/// What all tasks have seen, and whether they go on.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) pause: Arc<Pause>,
    /// Whether each reply is compared with its command.
    pub(super) verifies: bool,
    /// One caller in N gives up.
    pub(super) give_up: Option<NonZeroU32>,
    rests: AtomicBool,
    busy: AtomicU64,
    /// How many operations there are to be.
    most: u64,
    asked: AtomicU64,
    without_server: AtomicU64,
    delivered: AtomicU64,
    good: AtomicU64,
    failed: AtomicU64,
    given_up: [AtomicU64; 2],
    foreign: AtomicU64,
    /// By what they have in common with others of their kind: all but numbers.
    reasons: Mutex<BTreeMap<String, (String, u64)>>,
    shards: [Mutex<Shard>; SHARDS],
}

/// Of some of the tasks, so that they do not all want the same lock.
#[derive(Default)]
struct Shard {
    waits: Latencies,
    operations: Latencies,
}

/// Enough for as many cores as there may be.
const SHARDS: usize = 16;

/// So many different reasons are told, and the others are counted together: texts of servers may
/// all be different.
const REASONS: usize = 20;

/// How often, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Check-outs that were begun: where there was no server in time, no pool was asked.
    pub(super) asked: u64,
    /// Those that got a connection.
    pub(super) delivered: u64,
    /// Operations that went well.
    pub(super) good: u64,
    /// Check-outs and operations that failed.
    pub(super) failed: u64,
    /// Check-outs and operations whose caller gave up.
    pub(super) given_up: [u64; 2],
}

impl Tally {
    pub(super) fn new(asked: &Arguments, timeline: Arc<Timeline>, pause: Arc<Pause>) -> Self {
        let most = asked.ops.map_or(u64::MAX, NonZeroU64::get);
        let Arguments { chaos: verifies, give_up, .. } = *asked;
        Self { most, verifies, give_up, timeline, pause, ..Self::default() }
    }

    /// Whether there is one operation more to do, which the caller then has to do.
    pub(super) fn next(&self) -> bool {
        if self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        let next = |asked: u64| (asked < self.most).then_some(asked + 1);
        self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Whether tasks rest, so that connections are idle.
    pub(super) fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// Lets tasks rest after what they are doing, or go on.
    pub(super) fn rest(&self, rests: bool) {
        self.rests.store(rests, Ordering::Relaxed);
    }

    /// Counts a task as busy until this is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(&self.busy)
    }

    /// Whether any task is busy.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    /// An operation got a reply to another command.
    pub(super) fn foreign(&self) {
        self.foreign.fetch_add(1, Ordering::Relaxed);
        self.failed("operation: the reply belongs to another command");
    }

    /// How many operations got a reply to another command.
    pub(super) fn foreign_replies(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    /// There was no server to ask.
    pub(super) fn without_server(&self, reason: &str) {
        self.without_server.fetch_add(1, Ordering::Relaxed);
        self.failed(reason);
    }

    /// A connection was handed out.
    pub(super) fn delivered(&self, task: u32, wait: Duration) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        self.shard(task).waits.record(wait);
    }

    /// A caller gave up before it had a connection.
    pub(super) fn gave_up_check_out(&self) {
        self.given_up[0].fetch_add(1, Ordering::Relaxed);
    }

    /// A caller gave up in the middle of an operation.
    pub(super) fn gave_up_operation(&self) {
        self.given_up[1].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn good(&self, task: u32, time: Duration) {
        self.good.fetch_add(1, Ordering::Relaxed);
        self.timeline.good(time);
        self.shard(task).operations.record(time);
    }

    pub(super) fn failed(&self, reason: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.timeline.failed();
        // Where more can be read about it is not for a table.
        let reason = reason.split(": https://").next().unwrap_or_default().to_owned();
        let mut reasons = lock(&self.reasons);
        let kind = without_numbers(&reason);
        let has_room = reasons.len() < REASONS || reasons.contains_key(&kind);
        let (kind, reason) =
            if has_room { (kind, reason) } else { (OTHERS.to_owned(), OTHERS.to_owned()) };
        let (told, count) = reasons.entry(kind).or_insert_with(|| (reason.clone(), 0));
        *count += 1;
        if *told != reason {
            *told = in_common(told, &reason);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let [begun, without_server, delivered, good, failed] =
            [&self.asked, &self.without_server, &self.delivered, &self.good, &self.failed]
                .map(|count| count.load(Ordering::Relaxed));
        let given_up = self.given_up.each_ref().map(|count| count.load(Ordering::Relaxed));
        let asked = begun.saturating_sub(without_server);
        Counts { asked, delivered, good, failed, given_up }
    }

    pub(super) fn reasons(&self) -> BTreeMap<String, u64> {
        lock(&self.reasons).values().cloned().collect()
    }

    /// Of waiting for a connection, and of operations.
    pub(super) fn quantiles(&self) -> [Quantiles; 2] {
        let (mut waits, mut operations) = (Latencies::default(), Latencies::default());
        for shard in self.shards.iter().map(lock) {
            waits.add(&shard.waits);
            operations.add(&shard.operations);
        }
        [waits, operations].map(|latencies| latencies.quantiles())
    }

    fn shard(&self, task: u32) -> MutexGuard<'_, Shard> {
        lock(&self.shards[task as usize % SHARDS])
    }
}

/// A task that is doing something.
pub(super) struct Busy<'a>(&'a AtomicU64);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const OTHERS: &str = "for other reasons";

/// A text with each of its numbers as a `#`.
fn without_numbers(text: &str) -> String {
    let mut kind = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '0'..='9' if kind.ends_with('#') => {}
            '0'..='9' => {
                if kind.ends_with('-') {
                    kind.pop();
                }
                kind.push('#');
            }
            letter => kind.push(letter),
        }
    }
    kind
}

/// Two texts of one kind: the words in which they differ are left out.
fn in_common(one: &str, other: &str) -> String {
    let words = one.split(' ').zip(other.split(' '));
    words.map(|(one, other)| if one == other { one } else { "…" }).collect::<Vec<_>>().join(" ")
}

/// Poisoning is ignored: the count is valid at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_operations_as_were_asked_for() {
        let tally = Tally { most: 2, ..Tally::default() };
        assert_eq!([tally.next(), tally.next(), tally.next()], [true, true, false]);
        assert_eq!(tally.counts().asked, 2);
    }

    #[test]
    fn reasons_without_end_are_counted_together() {
        let tally = Tally::default();
        (0..50).for_each(|number| tally.failed(&"x".repeat(number)));
        tally.failed("xxx");
        let reasons = tally.reasons();
        assert_eq!((reasons.len(), reasons["xxx"], reasons[OTHERS]), (REASONS + 1, 2, 30));
        assert_eq!(reasons.values().sum::<u64>(), 51);
    }

    #[test]
    fn what_differs_in_numbers_is_one_reason() {
        let tally = Tally::default();
        for length in [7, -300_000] {
            tally.failed(&format!("a length of {length} is not between 16 and 48000000 bytes"));
        }
        tally.failed("timed out after 500ms");
        tally.failed("no end: https://docs.rs/somewhere#unexpected-eof");
        let expected = [
            ("a length of … is not between 16 and 48000000 bytes", 2),
            ("no end", 1),
            ("timed out after 500ms", 1),
        ];
        let expected = expected.map(|(reason, count)| (reason.to_owned(), count));
        assert_eq!(tally.reasons(), BTreeMap::from(expected));
    }
}

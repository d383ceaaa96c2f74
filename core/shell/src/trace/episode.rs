//! Episodes of timeouts: one dump when the first comes, one when they are over.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Weak;
use std::time::{Duration, Instant};

use super::journaled::DumpedBeside;
use super::reason::Reason;

/// Which timeouts are one episode: under the lock of the pool.
#[derive(Debug)]
pub(super) struct Episodes {
    pause: Duration,
    latest: Option<Instant>,
    /// When the thread that writes last heard of one.
    told: Option<Instant>,
}

/// What a timeout is to the thread that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimedOut {
    /// The first of an episode.
    First,
    /// The episode is still going on.
    StillGoesOn,
    /// It has heard so a moment ago.
    Known,
}

impl Episodes {
    pub(super) const fn new(pause: Duration) -> Self {
        Self { pause, latest: None, told: None }
    }

    pub(super) fn timed_out(&mut self, now: Instant) -> TimedOut {
        let is_within = |since: Option<Instant>, time: Duration| {
            since.is_some_and(|since| now.saturating_duration_since(since) < time)
        };
        let goes_on = is_within(self.latest, self.pause);
        self.latest = Some(now);
        if goes_on && is_within(self.told, self.pause / TOLD) {
            return TimedOut::Known;
        }
        self.told = Some(now);
        if goes_on { TimedOut::StillGoesOn } else { TimedOut::First }
    }
}

/// How often in a pause the thread hears that an episode goes on.
const TOLD: u32 = 4;

/// What follows an episode: in the thread that writes.
pub(super) struct Aftermath {
    pause: Duration,
    /// When the episode is over, unless there is another timeout.
    ends: Option<Instant>,
    /// What is dumped with the pool, too.
    beside: Option<Weak<dyn DumpedBeside>>,
    /// The files of episodes that are there.
    files: VecDeque<PathBuf>,
}

impl Aftermath {
    pub(super) const fn new(pause: Duration, beside: Option<Weak<dyn DumpedBeside>>) -> Self {
        Self { pause, ends: None, beside, files: VecDeque::new() }
    }

    pub(super) fn timed_out(&mut self) {
        // The last of them may not be told.
        let pause = self.pause.saturating_add(self.pause / TOLD);
        self.ends = Instant::now().checked_add(pause);
    }

    /// How long it takes until the episode is over, if there is one.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.ends.map(|ends| ends.saturating_duration_since(Instant::now()))
    }

    /// Whether the episode is over, and was not a moment ago.
    pub(super) fn is_over(&mut self) -> bool {
        let is_over = self.time_left().is_some_and(|left| left.is_zero());
        if is_over {
            self.ends = None;
        }
        is_over
    }

    /// Whether there is an episode, which is over now because another one begins.
    pub(super) const fn cut_short(&mut self) -> bool {
        self.ends.take().is_some()
    }

    /// The pool was dumped into this file: what belongs to it is, too. Removes the oldest files beyond [`FILES`].
    pub(super) fn dumped(&mut self, file: Option<PathBuf>, reason: Reason) {
        let beside = self.beside.as_ref().and_then(Weak::upgrade);
        let beside = beside.and_then(|beside| beside.dump(reason));
        self.files.extend(file.into_iter().chain(beside));
        let more = self.files.len().saturating_sub(FILES);
        for old in self.files.drain(..more) {
            // It may have been moved away.
            let _ = fs::remove_file(old);
        }
    }
}

/// Of the episodes of a pool that many files are kept, each about as large as its flight recorder.
const FILES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_close_to_each_other_are_one_episode() {
        let start = Instant::now();
        let mut episodes = Episodes::new(Duration::from_secs(40));
        for (second, expected) in [
            (0, TimedOut::First),
            (1, TimedOut::Known),
            (10, TimedOut::StillGoesOn),
            (19, TimedOut::Known),
            (58, TimedOut::StillGoesOn),
            (98, TimedOut::First),
        ] {
            let now = start + Duration::from_secs(second);
            assert_eq!(episodes.timed_out(now), expected, "{second}");
        }
    }

    #[test]
    fn the_oldest_files_of_episodes_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut aftermath = Aftermath::new(Duration::from_secs(1), None);
        for number in 0..FILES + 3 {
            let path = folder.path().join(number.to_string());
            fs::write(&path, "").expect("a file");
            aftermath.dumped(Some(path), Reason::WaitQueueTimeout);
        }
        let is_there = |number: usize| folder.path().join(number.to_string()).exists();
        assert_eq!((0..FILES + 3).filter(|it| is_there(*it)).count(), FILES);
        assert!(!is_there(2) && is_there(3));
    }
}

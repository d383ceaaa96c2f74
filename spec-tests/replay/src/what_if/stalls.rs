//! When the program stood still.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::pool::Instant;

use super::request::{Request, in_order};

/// The stalls of a program: for a while nothing happened, and then several uses ended at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Stalls {
    /// From when to when, in order.
    intervals: Vec<(Instant, Instant)>,
    /// Requests whose use ended with a stall, and how long it had lasted when the stall began: their server answered sooner
    /// or later in between.
    cut: BTreeMap<u32, Duration>,
}

impl Stalls {
    /// Those in which nothing happened for long while connections were in use, and after which half of their uses ended at
    /// once, although they had not begun together; none if they are so few that they may be chance.
    pub(super) fn of(requests: &[Request], (start, end): (Instant, Instant)) -> Self {
        let count = (requests.len() as u32).max(1);
        let silence = (end.saturating_since(start) / count * SILENCE).max(LEAST_SILENCE);
        let (mut in_use, mut last, mut stalls) = (0, start, Self::default());
        let mut woken: Option<Awakening> = None;
        let mut changes = changes(requests).peekable();
        while let Some(&(at, _)) = changes.peek() {
            if let Some(is_over) = woken.take_if(|it| at.saturating_since(it.end) > AT_ONCE) {
                stalls.add(is_over);
            }
            if in_use >= 2 && at.saturating_since(last) >= silence {
                let least = 2.max(in_use / 2);
                woken = Some(Awakening { begin: last, end: at, least, ended: Vec::new() });
            }
            last = at;
            while let Some((_, change)) = changes.next_if(|(it, _)| *it == at) {
                match change {
                    Change::Asked => {}
                    Change::Begun => in_use += 1,
                    Change::Ended(number) => {
                        in_use -= 1;
                        let began = requests[number as usize].answered();
                        if let Some(woken) = woken.as_mut().filter(|it| began <= it.begin) {
                            woken.ended.push((number, began));
                        }
                    }
                }
            }
        }
        let is_chance = stalls.count() < STALLS.max(requests.len() / STALLS_PER);
        if is_chance { Self::default() } else { stalls }
    }

    /// Unless the uses began together.
    fn add(&mut self, Awakening { begin, end, least, ended }: Awakening) {
        let begins = || ended.iter().map(|&(_, began)| began);
        let apart = begins().max().zip(begins().min());
        let apart = apart.map_or(Duration::ZERO, |(last, first)| last.saturating_since(first));
        if ended.len() >= least && apart > AT_ONCE {
            self.intervals.push((begin, end));
            self.cut.extend(ended.iter().map(|&(it, began)| (it, begin.saturating_since(began))));
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.intervals.len()
    }

    /// For how long the use of a request had lasted when the stall began with which it ended; `None` if it ended otherwise.
    pub(super) fn cut(&self, request: u32) -> Option<Duration> {
        self.cut.get(&request).copied()
    }

    /// The stall in which a time lies, or with which it ends.
    pub(super) fn at(&self, at: Instant) -> Option<(Instant, Instant)> {
        let next = self.intervals.partition_point(|&(_, end)| end < at);
        self.intervals.get(next).copied().filter(|&(begin, _)| begin < at)
    }

    /// When something happens that would happen then, if the program did not stand still.
    pub(super) fn awake(&self, at: Instant) -> Instant {
        self.at(at).map_or(at, |(_, end)| end)
    }
}

/// What requests do: a use begins, or ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Asked,
    Begun,
    Ended(u32),
}

fn changes(requests: &[Request]) -> impl Iterator<Item = (Instant, Change)> {
    in_order(requests, |number, it| {
        let ended = it.ended().filter(|_| it.was_served());
        [
            Some((it.asked, Change::Asked)),
            ended.map(|_| (it.answered(), Change::Begun)),
            ended.map(|at| (at, Change::Ended(number))),
        ]
    })
}

/// After a silence.
struct Awakening {
    begin: Instant,
    end: Instant,
    /// How many uses have to end.
    least: usize,
    /// The requests whose use has, and when it began.
    ended: Vec<(u32, Instant)>,
}

/// Soon after something else, whatever threads do.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);
/// As long as so many requests take on average.
const SILENCE: u32 = 8;
const LEAST_SILENCE: Duration = Duration::from_millis(5);
/// Fewer are chance; and fewer than one for so many requests.
const STALLS: usize = 3;
const STALLS_PER: usize = 1000;

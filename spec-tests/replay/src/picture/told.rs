//! Pictures of the pools of any driver, from their events.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::time::Duration;

use cenote_check::Unreadable;
use cenote_core::pool::Instant;

use super::collect::{Collector, SLOWEST};
use super::detail::Detail;
use super::model::{Life, Limits, Mark, MarkKind, Picture, Point, Title, Use, UseKind};
use crate::clock::{Clock, UtcOffset};
use crate::explain::{Outcome, POOLS, ToldLife, ToldPool, read_events};

/// Of the pools that the events tell of, at most [`POOLS`] with the most requests; and how many others there are.
///
/// # Errors
///
/// What cannot be read, with the number of its line: as of [`explain_events`](crate::explain::explain_events).
pub fn of_events(lines: impl BufRead) -> Result<(Vec<(Picture, Title)>, usize), Unreadable> {
    let (pools, others) = read_events(lines, SLOWEST, POOLS)?;
    Ok((pools.into_iter().map(|(address, pool)| draw(pool, &address)).collect(), others))
}

fn draw(pool: ToldPool, address: &str) -> (Picture, Title) {
    let (start, is_new) = (pool.start, pool.is_new);
    let mut drawn = Collector::from(start);
    (drawn.picture.end, drawn.picture.steps) = (pool.now.as_nanos(), pool.counted.len() as u64);
    drawn.connections(&pool);
    drawn.numbers(&pool);
    drawn.happenings(&pool);
    let clock = Clock::from(0, start, UtcOffset::default());
    Detail::default().limit(&mut drawn.picture);
    let picture = drawn.complete(&pool.finish(address, None), clock);
    (picture, Title { address: Some(address.to_owned()), is_new, ..Title::default() })
}

impl Collector {
    /// Each in the lowest slot that is free.
    fn connections(&mut self, pool: &ToldPool) {
        let mut taken: BTreeSet<(u64, u32)> = BTreeSet::new();
        let mut free: BTreeSet<u32> = BTreeSet::new();
        let mut served: BTreeMap<u64, Vec<(Instant, u64, Option<Duration>)>> = BTreeMap::new();
        for (holder, request) in (1..).zip(&pool.requests) {
            if let Some((waited, Outcome::Served(number))) = &request.ended {
                let of = served.entry(*number).or_default();
                of.push((request.asked + *waited, holder, request.held));
            }
        }
        served.values_mut().for_each(|uses| uses.sort_unstable());
        for life in &pool.lives {
            let (start, end) = (life.created.as_nanos(), ended(life, pool));
            while let Some(&(over, slot)) = taken.first().filter(|(over, _)| *over <= start) {
                taken.remove(&(over, slot));
                free.insert(slot);
            }
            let slot = free.pop_first().unwrap_or(taken.len() as u32);
            taken.insert((end, slot));
            let number = life.number;
            let why = life.why.as_ref().map_or(0, |why| self.texts.index(why, "closed"));
            self.picture.lives.push(Life { slot, number, start, end, why });
            let pending = life.ready.map_or(end, Instant::as_nanos);
            let usage = |kind, holder, start, end| Use {
                slot,
                number,
                kind,
                holder,
                start,
                end,
                note: 0,
                place: 0,
                count: 1,
                busy: end - start,
            };
            self.picture.uses.push(usage(UseKind::Pending, 0, start, pending));
            // After a pool that was closed, another one has the same numbers.
            let of_number = served.get(&number).map_or(&[][..], Vec::as_slice);
            let before = of_number.partition_point(|(since, ..)| since.as_nanos() < start);
            let uses = of_number[before..].iter().take_while(|(it, ..)| it.as_nanos() <= end);
            self.picture.uses.extend(uses.map(|&(since, holder, held)| {
                let until = held.map_or(end, |held| (since + held).as_nanos());
                usage(UseKind::InUse, holder, since.as_nanos(), until)
            }));
        }
        self.picture.lives.sort_by_key(|life| life.end);
        self.picture.uses.sort_by_key(|usage| usage.end);
    }

    fn numbers(&mut self, pool: &ToldPool) {
        for (at, counts, waiting) in &pool.counted {
            let waiting = u32::try_from(*waiting).unwrap_or(u32::MAX);
            let (at, total, in_use) = (at.as_nanos(), counts.total, counts.in_use);
            let point = Point { at, total, in_use, pending: counts.pending, waiting };
            self.picture.points.push(point);
            let (max, connecting) = (counts.max.unwrap_or(0), counts.max_connecting);
            let limits = Limits { at, max, min: 0, connecting };
            let last = self.picture.limits.last();
            if last.is_none_or(|last| Limits { at, ..*last } != limits) {
                self.picture.limits.push(limits);
            }
        }
    }

    /// Waits and marks.
    fn happenings(&mut self, pool: &ToldPool) {
        let mut waits = pool.waits();
        waits.sort_by_key(|wait| wait.ended);
        for wait in waits {
            if let Outcome::Failed(failure) = &wait.outcome {
                let told = format!("check-out failed: {} ({})", failure.word(), wait.in_the_way());
                self.tell(wait.ended, MarkKind::CheckOutFailed, wait.waiter.0, &told);
            }
            self.wait(&wait);
        }
        for at in &pool.readied {
            self.tell(*at, MarkKind::Ready, 0, "Ready");
        }
        for (number, (at, why)) in (1..).zip(pool.causes()) {
            self.tell(at, MarkKind::Clear, number, &format!("Clear ({why})"));
        }
        for life in pool.lives.iter().filter(|life| life.ready.is_none()) {
            if let Some(at) = life.closed {
                let why = life.why.as_deref().unwrap_or("the events do not say why");
                self.tell(
                    at,
                    MarkKind::EstablishFailed,
                    life.number,
                    &format!("EstablishFailed ({why})"),
                );
            }
        }
        if let Some(at) = pool.closed {
            self.tell(at, MarkKind::Close, 0, "Close");
        }
    }

    fn tell(&mut self, at: Instant, kind: MarkKind, about: u64, text: &str) {
        let text = self.texts.index(text, "one of many marks");
        self.picture.marks.push(Mark { at: at.as_nanos(), kind, step: 0, text, about });
    }
}

fn ended(life: &ToldLife, pool: &ToldPool) -> u64 {
    life.closed.unwrap_or(pool.now).as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_drawn_as_a_trace_is() {
        let events = r#"
{"at":10.0,"type":"ConnectionPoolCreated","address":"a:1","options":{"maxPoolSize":1}}
{"at":10.0,"type":"ConnectionPoolReady","address":"a:1"}
{"at":10.1,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":10.1,"type":"ConnectionCreated","address":"a:1","connectionId":1}
{"at":10.2,"type":"ConnectionReady","address":"a:1","connectionId":1,"durationMS":100}
{"at":10.2,"type":"ConnectionCheckedOut","address":"a:1","connectionId":1,"durationMS":100}
{"at":10.3,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":10.4,"type":"ConnectionCheckOutFailed","address":"a:1","reason":"timeout","durationMS":100}
{"at":10.5,"type":"ConnectionCheckedIn","address":"a:1","connectionId":1}
{"at":10.6,"type":"ConnectionClosed","address":"a:1","connectionId":1,"reason":"idle"}
{"at":10.7,"type":"ConnectionCreated","address":"a:1","connectionId":2}"#;
        let (drawn, others) = of_events(events.as_bytes()).expect("events");
        let ([(picture, title)], 0) = (drawn.as_slice(), others) else { panic!("one pool") };
        assert_eq!((title.address.as_deref(), title.is_new), (Some("a:1"), true));
        // Tenths of a second, because the times are floating-point numbers.
        let tenth = |at: u64| (at + 50_000_000) / 100_000_000;
        let lives =
            picture.lives.iter().map(|it| (it.slot, it.number, tenth(it.start), tenth(it.end)));
        assert_eq!(lives.collect::<Vec<_>>(), [(0, 1, 1, 6), (0, 2, 7, 7)]);
        let uses =
            picture.uses.iter().map(|it| (it.kind, it.holder, tenth(it.start), tenth(it.end)));
        let pending = UseKind::Pending;
        let uses_expected = [(pending, 0, 1, 2), (UseKind::InUse, 1, 2, 5), (pending, 0, 7, 7)];
        assert_eq!(uses.collect::<Vec<_>>(), uses_expected);
        let waits =
            picture.waits.iter().map(|it| (it.id, it.outcome, tenth(it.start), tenth(it.end)));
        assert_eq!(waits.collect::<Vec<_>>(), [(1, 0, 1, 2), (2, 1, 3, 4)]);
        let marks = picture.marks.iter().map(|it| (it.kind, it.about, tenth(it.at)));
        let marks_expected = [(MarkKind::Ready, 0, 0), (MarkKind::CheckOutFailed, 2, 4)];
        assert_eq!(marks.collect::<Vec<_>>(), marks_expected);
        let last = picture.points.last().expect("a point");
        assert_eq!((last.total, last.in_use, last.pending, last.waiting), (1, 0, 1, 0));
        assert_eq!(picture.limits.last().map(|it| it.max), Some(1));
        assert!(
            picture.summary.contains("1 timed out, maxPoolSize: 1 of 1 in use"),
            "{}",
            picture.summary
        );
        assert_eq!(picture.texts[picture.lives[0].why as usize], "idle");
    }
}

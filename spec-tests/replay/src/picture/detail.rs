//! The detail of a long trace: neighbours that nobody can tell apart are joined, so that a page stays small.

use super::model::{Picture, Point, Use, UseKind, Wait};
use super::rows;

/// As many points are drawn one by one, and half as many uses and waits: those of a million steps.
const MOST: usize = 1 << 20;
/// In nanoseconds, what is joined first.
const FINEST: u64 = 1_000;
/// What is joined is no longer than this part of the trace, which is less than a pixel.
const PARTS: u64 = 1 << 13;
/// One in this many is longer than any that are joined.
const LONGEST: usize = 40;

/// How far uses, waits and points are joined.
#[derive(Debug)]
pub(super) struct Detail {
    uses: Level,
    waits: Level,
    points: Level,
}

#[derive(Debug)]
struct Level {
    /// If there are as many, more is joined.
    limit: usize,
    /// What is joined is no longer, in nanoseconds; 0: nothing is.
    below: u64,
}

impl Detail {
    fn new(most: usize) -> Self {
        let [uses, waits, points] =
            [most / 2, most / 2, most].map(|limit| Level { limit, below: 0 });
        Self { uses, waits, points }
    }

    /// Of a picture in which everything is needed.
    pub(super) fn whole() -> Self {
        Self::new(usize::MAX)
    }

    /// Joins more where there is much.
    pub(super) fn limit(&mut self, picture: &mut Picture) {
        let longest = (picture.end - picture.start) / PARTS;
        if picture.uses.len() >= self.uses.limit {
            self.uses.join_all(&mut picture.uses, longest);
        }
        if picture.waits.len() >= self.waits.limit {
            rows::assign(&mut picture.waits);
            self.waits.join_all(&mut picture.waits, longest);
        }
        if picture.points.len() >= self.points.limit {
            self.points.limit(&mut picture.points, longest, thin);
        }
        let levels = [&self.uses, &self.waits, &self.points];
        picture.joined_below = levels.map(|level| level.below).into_iter().max().unwrap_or(0);
    }
}

impl Default for Detail {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl Level {
    /// Joins until half as many are left as are the limit, if that is to be had.
    fn limit<T>(&mut self, all: &mut Vec<T>, longest: u64, join: impl Fn(&mut Vec<T>, u64)) {
        let enough = self.limit / 2;
        // What is new is joined as what was there before.
        if self.below > 0 {
            join(all, self.below);
        }
        while all.len() > enough && (self.below * 2).max(FINEST) <= longest {
            self.below = (self.below * 2).max(FINEST);
            join(all, self.below);
        }
        self.limit = self.limit.max(all.len() * 2);
    }

    fn join_all<T: Interval>(&mut self, all: &mut Vec<T>, longest: u64) {
        let mut lengths: Vec<_> = all.iter().map(Interval::length).collect();
        let rank = lengths.len() - lengths.len() / LONGEST - 1;
        let short = *lengths.select_nth_unstable(rank).1;
        drop(lengths);
        all.sort_unstable_by_key(Interval::place);
        self.limit(all, longest, |all, below| {
            all.dedup_by(|next, last| {
                let ((row, start, _), (other, _, end)) = (last.place(), next.place());
                let joins = row == other
                    && end - start <= below
                    && last.length().max(next.length()) <= short
                    && last.is_like(next);
                if joins {
                    last.join(next);
                }
                joins
            });
        });
        all.sort_unstable_by_key(|it| (it.place().2, it.place()));
    }
}

/// An interval in a row, which may stand for several.
trait Interval {
    /// Its row, and from when to when it is.
    fn place(&self) -> (u32, u64, u64);
    /// How long each of them is, on average.
    fn length(&self) -> u64;
    fn is_like(&self, next: &Self) -> bool;
    fn join(&mut self, next: &Self);
}

impl Interval for Use {
    fn place(&self) -> (u32, u64, u64) {
        (self.slot, self.start, self.end)
    }

    fn length(&self) -> u64 {
        self.busy / u64::from(self.count)
    }

    /// Both ended as usual.
    fn is_like(&self, next: &Self) -> bool {
        let is_usual = |it: &Self| it.kind == UseKind::InUse && it.note == 0 && it.holder != 0;
        let is_same = (self.number, self.place) == (next.number, next.place);
        is_usual(self) && is_usual(next) && is_same
    }

    fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.busy += next.busy;
        self.count += next.count;
    }
}

impl Interval for Wait {
    fn place(&self) -> (u32, u64, u64) {
        (self.row, self.start, self.end)
    }

    fn length(&self) -> u64 {
        self.busy / u64::from(self.count)
    }

    /// Both were served.
    fn is_like(&self, next: &Self) -> bool {
        self.outcome == 0 && next.outcome == 0
    }

    /// What stood in the way is that of the longer one.
    fn join(&mut self, next: &Self) {
        let (start, busy, count) = (self.start, self.busy + next.busy, self.count + next.count);
        let longer = if self.length() < next.length() { *next } else { *self };
        *self = Self { start, end: next.end, busy, count, ..longer };
    }
}

/// Leaves the largest counts of each time of this length, and otherwise the mean of each.
fn thin(points: &mut Vec<Point>, below: u64) {
    let mut thinned = Vec::new();
    let mut rest = Rest::default();
    let mut parts = points.chunk_by(|one, other| one.at / below == other.at / below).peekable();
    while let Some(part) = parts.next() {
        // The last point is the state from then on.
        let Some(next) = parts.peek().map(|next| next[0].at).filter(|_| part.len() > FEW) else {
            thinned.extend_from_slice(part);
            continue;
        };
        let largest = COLUMNS.map(|column| {
            let places = 0..part.len();
            places.rev().max_by_key(|&place| *column(&mut { part[place] })).unwrap_or(0)
        });
        let end = |place: usize| part.get(place + 1).map_or(next, |next| next.at);
        let others = || (0..part.len()).filter(|place| !largest.contains(place));
        let mean = rest.mean(others().map(|place| (part[place], end(place) - part[place].at)));
        let mut is_mean = false;
        for (place, point) in part.iter().enumerate() {
            let is_largest = largest.contains(&place);
            if is_largest {
                thinned.push(*point);
            } else if !is_mean {
                thinned.push(Point { at: point.at, ..mean });
            }
            is_mean = !is_largest;
        }
    }
    *points = thinned;
}

/// As many points are left of a time at most: one for each largest count, and the means around them.
const FEW: usize = 2 * COLUMNS.len() + 1;

const COLUMNS: [fn(&mut Point) -> &mut u32; 4] =
    [|it| &mut it.in_use, |it| &mut it.pending, |it| &mut it.waiting, |it| &mut it.total];

/// Of counts times nanoseconds, what means in whole numbers have left out so far.
#[derive(Default)]
struct Rest([i128; 4]);

impl Rest {
    /// The mean of points that last for so long.
    fn mean(&mut self, points: impl Iterator<Item = (Point, u64)>) -> Point {
        let mut mean = Point { at: 0, total: 0, in_use: 0, pending: 0, waiting: 0 };
        let (mut time, mut most) = (0, [0; 4]);
        for (mut point, lasts) in points {
            time += i128::from(lasts);
            for (place, column) in COLUMNS.into_iter().enumerate() {
                most[place] = most[place].max(*column(&mut point));
                self.0[place] += i128::from(*column(&mut point)) * i128::from(lasts);
            }
        }
        for (place, column) in COLUMNS.into_iter().enumerate() {
            let rounded = (self.0[place] + time / 2).checked_div(time).unwrap_or(0);
            *column(&mut mean) = u32::try_from(rounded.max(0)).unwrap_or(u32::MAX).min(most[place]);
        }
        mean.in_use = mean.in_use.min(mean.total);
        mean.pending = mean.pending.min(mean.total - mean.in_use);
        for (rest, column) in self.0.iter_mut().zip(COLUMNS) {
            *rest -= i128::from(*column(&mut mean)) * time;
        }
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_has_the_same_sums_and_stays_small() {
        let mut picture = Picture { end: 1 << 40, ..Picture::default() };
        let (mut whole, mut detail) = (picture.clone(), Detail::new(12_000));
        for number in 0..40_000_u64 {
            let (start, lasts) = (number << 22, 1 << (18 + number % 3));
            let end = start + lasts;
            let (slot, note) = ((number % 3) as u32, u32::from(number % 1_000 == 0));
            let usage = Use {
                slot,
                number: 1,
                kind: UseKind::InUse,
                holder: number + 1,
                start,
                end,
                note,
                place: 0,
                count: 1,
                busy: lasts,
            };
            whole.uses.push(usage);
            picture.uses.push(usage);
            let outcome = u8::from(number % 1_000 == 0);
            let wait = Wait {
                row: 0,
                id: number,
                connection: 1,
                outcome,
                start,
                end,
                limit: 0,
                ahead: None,
                why: 0,
                place: 0,
                count: 1,
                busy: lasts,
            };
            whole.waits.push(wait);
            picture.waits.push(wait);
            let waiting = if number == 20_000 { 99 } else { slot };
            let point = Point { at: start, total: 9, in_use: slot, pending: 2, waiting };
            whole.points.push(point);
            picture.points.push(point);
            detail.limit(&mut picture);
        }
        let sums = |it: &Picture| {
            let area = |of: fn(&Point) -> u32| {
                let lasts = it.points.windows(2).map(|it| (it[1].at - it[0].at, of(&it[0])));
                // Whole numbers leave out less than one for the length of what is joined.
                lasts.map(|(lasts, it)| lasts * u64::from(it)).sum::<u64>() >> 30
            };
            let largest = |of: fn(&Point) -> u32| it.points.iter().map(of).max();
            (
                it.uses.iter().map(|it| u64::from(it.count)).sum::<u64>(),
                it.uses.iter().map(|it| it.busy).sum::<u64>(),
                it.uses.iter().filter(|it| it.note != 0).count(),
                it.waits.iter().map(|it| u64::from(it.count)).sum::<u64>(),
                it.waits.iter().map(|it| it.busy).sum::<u64>(),
                it.waits.iter().filter(|it| it.outcome != 0).count(),
                [largest(|it| it.waiting), largest(|it| it.in_use)],
                [area(|it| it.in_use), area(|it| it.waiting), area(|it| it.total)],
            )
        };
        assert_eq!(sums(&picture), sums(&whole));
        let left = [picture.uses.len(), picture.waits.len(), picture.points.len()];
        assert!(left[0] <= 10_000 && left[1] <= 10_000 && left[2] <= 24_000, "{left:?}");
        assert!((FINEST..=(1 << 40) / PARTS).contains(&picture.joined_below));
        assert!(picture.points.iter().all(|it| it.total >= it.in_use + it.pending));
    }
}

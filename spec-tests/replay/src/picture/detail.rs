//! The detail of a long trace: neighbours that no screen can tell apart are joined, so that a page stays small.

use super::model::{Picture, Point, Use, UseKind, Wait};
use super::rows;

/// As many points are drawn one by one, and half as many uses and waits: those of a million steps.
const MOST: usize = 1 << 20;
/// In nanoseconds, what is joined first.
const FINEST: u64 = 1_000;
/// What is joined is no longer than this part of the trace, which is less than a pixel.
const PARTS: u64 = 1 << 13;
/// One in this many is longer than any that are joined.
const LONGEST: u64 = 40;

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
        let short = short(all);
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
    /// How long they are together, and how many.
    fn sum(&self) -> (u64, u32);
    fn is_like(&self, next: &Self) -> bool;
    fn join(&mut self, next: &Self);

    /// How long each of them is, on average.
    fn length(&self) -> u64 {
        let (busy, count) = self.sum();
        busy / u64::from(count)
    }
}

/// What all but the longest do not exceed.
fn short<T: Interval>(all: &[T]) -> u64 {
    let mut lengths: Vec<_> = all.iter().map(|it| (it.length(), it.sum().1)).collect();
    lengths.sort_unstable();
    let mut longer = lengths.iter().map(|(_, count)| u64::from(*count)).sum::<u64>() / LONGEST;
    let usual = lengths.iter().rfind(|(_, count)| {
        let is_longer = u64::from(*count) <= longer;
        longer = longer.saturating_sub(u64::from(*count));
        !is_longer
    });
    usual.map_or(0, |(length, _)| *length)
}

impl Interval for Use {
    fn place(&self) -> (u32, u64, u64) {
        (self.slot, self.start, self.end)
    }

    fn sum(&self) -> (u64, u32) {
        (self.busy, self.count)
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

    fn sum(&self) -> (u64, u32) {
        (self.busy, self.count)
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
mod tests;

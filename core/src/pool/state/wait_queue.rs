//! The wait queue: first come, first served.
//!
//! Requests stand in the order of their ids. Serving takes from the front, and so does timing out
//! when deadlines come in order. Cancelling finds its request by its distance from the first one,
//! or by binary search where others between them are gone, and leaves a tombstone, which goes when
//! it reaches the front or when tombstones become the majority. So the cost of enqueueing, serving
//! and cancelling does not depend on the length of the queue, except for the search.

mod compact;
mod failed;

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

use super::request::Request;
use super::verify::{Verdict, ensure};
use crate::pool::id::WaiterId;
use crate::pool::time::Instant;

pub use failed::FailedRequests;

#[derive(Clone, Debug)]
enum Entry<W> {
    Waiting(Request<W>),
    /// Keeps the id of a request that left, for the binary search.
    Tombstone(WaiterId),
}

/// See the module.
///
/// Deadlines that come in order, as they do when `waitQueueTimeoutMS` sets them all, need no
/// second structure: the earliest is that of the first request which has one. Only out-of-order
/// deadlines, which are before that of an earlier request, are also kept in a heap.
// WQ-14
#[derive(Clone, Debug)]
pub(in crate::pool) struct WaitQueue<W> {
    entries: VecDeque<Entry<W>>,
    waiting: usize,
    /// Index of the first entry whose deadline came in order, or the end.
    first_timed: usize,
    /// The latest deadline that came in order.
    latest: Option<Instant>,
    out_of_order: BinaryHeap<Reverse<(Instant, WaiterId)>>,
}

impl<W> WaitQueue<W> {
    pub(in crate::pool) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            waiting: 0,
            first_timed: 0,
            latest: None,
            out_of_order: BinaryHeap::new(),
        }
    }

    /// Puts a request behind all others. Its id must be the greatest so far.
    // WQ-16
    #[inline(always)]
    pub(in crate::pool) fn push(&mut self, mut request: Request<W>) {
        let Request { id, deadline, .. } = request;
        assert!(self.entries.back().is_none_or(|last| last.id() < id), "ids increase");
        request.in_order = deadline.is_none() || deadline >= self.latest;
        if let Some(deadline) = deadline {
            if request.in_order {
                self.latest = Some(deadline);
            } else {
                self.out_of_order.push(Reverse((deadline, id)));
            }
        }
        // While no deadline is in order, the first one is that of the entry behind the last.
        let none_is_timed = self.first_timed == self.entries.len();
        if none_is_timed && !(request.in_order && deadline.is_some()) {
            self.first_timed += 1;
        }
        self.make_room();
        self.entries.push_back(Entry::Waiting(request));
        self.waiting += 1;
    }

    /// A quarter at a time, and not the double: a long queue would waste as much again as it needs.
    #[inline(always)]
    fn make_room(&mut self) {
        let (len, capacity) = (self.entries.len(), self.entries.capacity());
        if len == capacity {
            self.entries.reserve_exact((len / 4).max(16));
        }
    }

    /// Puts a request that has been served in vain back into its old place. Its deadline counts as
    /// out of order, because later requests are there already.
    #[inline(never)]
    pub(in crate::pool) fn put_back(&mut self, mut request: Request<W>) {
        let Request { id, deadline, .. } = request;
        let place = self.entries.partition_point(|entry| entry.id() < id);
        assert!(self.entries.get(place).is_none_or(|next| next.id() > id), "it is not there twice");
        request.in_order = deadline.is_none();
        if let Some(deadline) = deadline {
            // It may be there since the first time.
            let due = Reverse((deadline, id));
            if !self.out_of_order.iter().any(|&known| known == due) {
                self.out_of_order.push(due);
            }
        }
        self.make_room();
        self.entries.insert(place, Entry::Waiting(request));
        self.waiting += 1;
        if place <= self.first_timed {
            self.first_timed += 1;
        }
        self.compact();
    }

    /// Whether the oldest request may wait no longer.
    pub(in crate::pool) fn is_oldest_due(&self, now: Instant) -> bool {
        let oldest = self.entries.front().and_then(Entry::request);
        oldest.is_some_and(|request| request.is_due(now))
    }

    /// Since when the oldest request waits.
    #[inline]
    pub(in crate::pool) fn waits_since(&self) -> Option<Instant> {
        self.entries.front().and_then(Entry::request).map(|request| request.started)
    }

    /// Takes the oldest request.
    // WQ-06
    #[inline(always)]
    pub(in crate::pool) fn pop(&mut self) -> Option<Request<W>> {
        let Entry::Waiting(request) = self.entries.pop_front()? else {
            unreachable!("no tombstone is in front")
        };
        self.first_timed = self.first_timed.saturating_sub(1);
        self.waiting -= 1;
        self.compact();
        Some(request)
    }

    /// Takes all requests, at once.
    // WQ-06
    pub(in crate::pool) fn take_all(&mut self) -> FailedRequests<W> {
        FailedRequests(core::mem::replace(self, Self::new()))
    }

    /// Takes the request of this id, if it waits.
    // WQ-06
    pub(in crate::pool) fn remove(&mut self, id: WaiterId) -> Option<Request<W>> {
        self.find(id).map(|index| self.take(index))
    }

    /// Takes the request of this id, if it waits and may still wait.
    // WQ-06
    #[inline]
    pub(in crate::pool) fn remove_in_time(
        &mut self,
        id: WaiterId,
        now: Instant,
    ) -> Option<Request<W>> {
        let index = self.find(id)?;
        let is_due = self.entries[index].request().is_some_and(|request| request.is_due(now));
        (!is_due).then(|| self.take(index))
    }

    /// Takes the request with the earliest deadline, if that is `due`.
    // WQ-06
    pub(in crate::pool) fn pop_due(
        &mut self,
        due: impl FnOnce(Instant) -> bool,
    ) -> Option<Request<W>> {
        let (deadline, id) = self.earliest()?;
        if !due(deadline) {
            return None;
        }
        // Almost always it came in order, and then there is nothing to search.
        let is_in_order = self.entries.get(self.first_timed).is_some_and(|entry| entry.id() == id);
        let index = if is_in_order { Some(self.first_timed) } else { self.find(id) };
        index.map(|index| self.take(index))
    }

    #[inline]
    pub(in crate::pool) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// How many requests wait.
    pub(in crate::pool) const fn len(&self) -> usize {
        self.waiting
    }

    /// Whether any request times out.
    #[inline]
    pub(in crate::pool) fn is_timed(&self) -> bool {
        !self.is_empty() && self.next_deadline().is_some()
    }

    /// When the next request times out.
    pub(in crate::pool) fn next_deadline(&self) -> Option<Instant> {
        self.earliest().map(|(deadline, _)| deadline)
    }

    /// Each request, oldest first.
    pub(in crate::pool) fn iter(&self) -> impl Iterator<Item = Request<()>> {
        self.entries.iter().filter_map(Entry::request).map(Request::without_waiter)
    }

    /// Recounts what is kept as a number.
    pub(in crate::pool) fn verify(&self) -> Verdict {
        let Self { entries, waiting, first_timed, latest, out_of_order } = self;
        let requests = entries.iter().filter_map(Entry::request).count();
        ensure(requests == *waiting, "waiting requests are counted")?;
        let is_sorted = entries.iter().zip(entries.iter().skip(1)).all(|(a, b)| a.id() < b.id());
        ensure(is_sorted, "the wait queue is first in, first out")?;
        let has_front = entries.front().is_none_or(|front| front.request().is_some());
        ensure(has_front, "no tombstone is in front")?;
        let timed = entries.iter().position(Entry::is_timed_in_order).unwrap_or(entries.len());
        ensure(timed == *first_timed, "the first deadline in order is known")?;
        let earliest = self.iter().filter_map(|request| request.deadline).min();
        ensure(self.next_deadline() == earliest, "the earliest deadline is known")?;
        ensure(!entries.is_empty() || latest.is_none(), "an empty queue has no latest deadline")?;
        let kept = entries.len().max(out_of_order.len());
        ensure(kept <= self.kept_at_most(), "tombstones are bounded")
    }

    fn earliest(&self) -> Option<(Instant, WaiterId)> {
        let in_order = self.entries.get(self.first_timed).and_then(Entry::due);
        let out_of_order = self.out_of_order.peek().map(|&Reverse(due)| due);
        match (in_order, out_of_order) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn find(&self, id: WaiterId) -> Option<usize> {
        let is_it = |index: &usize| self.entries.get(*index).is_some_and(|it| it.id() == id);
        let distance = id.0.checked_sub(self.entries.front()?.id().0)?;
        let by_distance = usize::try_from(distance).ok().filter(is_it);
        let search = || self.entries.binary_search_by_key(&id, Entry::id).ok();
        let index = by_distance.or_else(search)?;
        self.entries[index].request().is_some().then_some(index)
    }

    fn take(&mut self, index: usize) -> Request<W> {
        let entry = &mut self.entries[index];
        let tombstone = Entry::Tombstone(entry.id());
        let Entry::Waiting(request) = core::mem::replace(entry, tombstone) else {
            unreachable!("a request, not a tombstone")
        };
        self.waiting -= 1;
        self.compact();
        request
    }
}

impl<W> Entry<W> {
    const fn id(&self) -> WaiterId {
        match self {
            Self::Waiting(Request { id, .. }) | Self::Tombstone(id) => *id,
        }
    }

    const fn request(&self) -> Option<&Request<W>> {
        match self {
            Self::Waiting(request) => Some(request),
            Self::Tombstone(_) => None,
        }
    }

    fn is_timed_in_order(&self) -> bool {
        self.request().is_some_and(|request| request.in_order && request.deadline.is_some())
    }

    fn due(&self) -> Option<(Instant, WaiterId)> {
        Some((self.request()?.deadline?, self.id()))
    }
}

#[cfg(test)]
mod tests;

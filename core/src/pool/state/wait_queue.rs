//! The wait queue: strictly first come, first served (WQ-01 … WQ-07).
//!
//! Requests lie in one ring in the order of their ids. Serving takes from the front, and so does
//! timing out when deadlines come in order; cancelling finds its request by binary search and leaves
//! a gap behind, which goes when it reaches the front or when gaps become the majority. So
//! enqueueing, serving and giving up cost the same however long the queue is, but for the search.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

use crate::pool::id::WaiterId;
use crate::pool::input::Purpose;
use crate::pool::time::Instant;

/// A request to check out that has not had its outcome.
#[derive(Clone, Debug)]
pub(in crate::pool) struct Request<W> {
    pub(in crate::pool) id: WaiterId,
    pub(in crate::pool) waiter: W,
    pub(in crate::pool) started: Instant,
    /// When it stops waiting, whoever set the limit.
    pub(in crate::pool) deadline: Option<Instant>,
    /// Whether the caller set it, so that it covers establishment, too (CS-02).
    pub(in crate::pool) deadline_is_callers: bool,
    pub(in crate::pool) purpose: Purpose,
}

/// A request without its waiter.
#[derive(Clone, Copy, Debug)]
pub(in crate::pool) struct Summary {
    pub(in crate::pool) id: WaiterId,
    pub(in crate::pool) started: Instant,
    pub(in crate::pool) deadline: Option<Instant>,
    pub(in crate::pool) deadline_is_callers: bool,
    pub(in crate::pool) purpose: Purpose,
}

impl<W> Request<W> {
    pub(in crate::pool) fn summary(&self) -> Summary {
        let &Self { id, waiter: _, started, deadline, deadline_is_callers, purpose } = self;
        Summary { id, started, deadline, deadline_is_callers, purpose }
    }

    /// Whether it may wait no longer.
    pub(in crate::pool) fn is_due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

#[derive(Clone, Debug)]
struct Entry<W> {
    id: WaiterId,
    /// `None` is a gap.
    request: Option<Waiting<W>>,
}

/// A [`Request`] without the id, which a gap keeps for the binary search.
#[derive(Clone, Debug)]
struct Waiting<W> {
    waiter: W,
    started: Instant,
    deadline: Option<Instant>,
    deadline_is_callers: bool,
    /// Whether its deadline is not before that of any earlier request, or there is none.
    in_order: bool,
    purpose: Purpose,
}

/// See the module.
///
/// Deadlines that come in order, as they do when `waitQueueTimeoutMS` sets them all, need no
/// second structure: the earliest is that of the first request which has one. Only stragglers,
/// whose deadline is before an earlier request's, are kept in a heap besides.
#[derive(Clone, Debug)]
pub(in crate::pool) struct WaitQueue<W> {
    entries: VecDeque<Entry<W>>,
    waiting: usize,
    /// Index of the first entry whose deadline came in order, or the end.
    first_timed: usize,
    /// The latest deadline that came in order.
    latest: Option<Instant>,
    stragglers: BinaryHeap<Reverse<(Instant, WaiterId)>>,
}

impl<W> WaitQueue<W> {
    pub(in crate::pool) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            waiting: 0,
            first_timed: 0,
            latest: None,
            stragglers: BinaryHeap::new(),
        }
    }

    /// Puts a request behind all others. Its id must be the greatest so far.
    pub(in crate::pool) fn push(&mut self, request: Request<W>) {
        let Request { id, waiter, started, deadline, deadline_is_callers, purpose } = request;
        assert!(self.entries.back().is_none_or(|last| last.id < id), "ids increase");
        let in_order = deadline.is_none() || deadline >= self.latest;
        if let Some(deadline) = deadline {
            if in_order {
                self.latest = Some(deadline);
            } else {
                self.stragglers.push(Reverse((deadline, id)));
            }
        }
        let waiting = Waiting { waiter, started, deadline, deadline_is_callers, in_order, purpose };
        self.entries.push_back(Entry { id, request: Some(waiting) });
        self.waiting += 1;
        self.settle();
    }

    /// Takes the oldest request.
    pub(in crate::pool) fn pop(&mut self) -> Option<Request<W>> {
        (!self.is_empty()).then(|| self.take(0))
    }

    /// Takes the request of this id, if it waits.
    pub(in crate::pool) fn remove(&mut self, id: WaiterId) -> Option<Request<W>> {
        self.find(id).map(|index| self.take(index))
    }

    /// Takes the request with the earliest deadline, if that is `due`.
    pub(in crate::pool) fn pop_due(
        &mut self,
        due: impl FnOnce(Instant) -> bool,
    ) -> Option<Request<W>> {
        let (deadline, id) = self.earliest()?;
        if !due(deadline) {
            return None;
        }
        // Almost always it came in order, and then there is nothing to search.
        let is_in_order = self.entries.get(self.first_timed).is_some_and(|entry| entry.id == id);
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
    pub(in crate::pool) fn iter(&self) -> impl Iterator<Item = Summary> {
        self.entries.iter().filter_map(|entry| {
            let &Waiting { started, deadline, deadline_is_callers, purpose, .. } =
                entry.request.as_ref()?;
            Some(Summary { id: entry.id, started, deadline, deadline_is_callers, purpose })
        })
    }

    /// Recounts what is kept as a number.
    pub(in crate::pool) fn check_invariants(&self) {
        let Self { entries, waiting, first_timed, latest, stragglers } = self;
        let requests = entries.iter().filter(|entry| entry.request.is_some()).count();
        assert_eq!(requests, *waiting, "who waits is counted");
        assert!(entries.iter().zip(entries.iter().skip(1)).all(|(a, b)| a.id < b.id), "FIFO");
        assert!(entries.front().is_none_or(|front| front.request.is_some()), "no gap in front");
        let timed = entries.iter().position(Entry::is_timed_in_order).unwrap_or(entries.len());
        assert_eq!(timed, *first_timed, "the first in order is known");
        let earliest = self.iter().filter_map(|request| request.deadline).min();
        assert_eq!(self.next_deadline(), earliest, "the earliest deadline is known");
        assert!(!entries.is_empty() || latest.is_none(), "a clean end");
        let kept = entries.len().max(stragglers.len());
        assert!(kept <= self.kept_at_most(), "who has gone is forgotten");
    }

    fn earliest(&self) -> Option<(Instant, WaiterId)> {
        let in_order = self.entries.get(self.first_timed).and_then(Entry::due);
        let straggler = self.stragglers.peek().map(|&Reverse(due)| due);
        match (in_order, straggler) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn find(&self, id: WaiterId) -> Option<usize> {
        let index = self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        self.entries[index].request.is_some().then_some(index)
    }

    fn take(&mut self, index: usize) -> Request<W> {
        let entry = &mut self.entries[index];
        let Waiting { waiter, started, deadline, deadline_is_callers, purpose, in_order: _ } =
            entry.request.take().expect("a request, not a gap");
        let id = entry.id;
        self.waiting -= 1;
        self.settle();
        Request { id, waiter, started, deadline, deadline_is_callers, purpose }
    }

    /// Restores what the fields promise after a request came or went. Every entry is passed over
    /// once in its life, so this costs a constant on average.
    fn settle(&mut self) {
        while self.entries.front().is_some_and(|front| front.request.is_none()) {
            self.entries.pop_front();
            self.first_timed = self.first_timed.saturating_sub(1);
        }
        if self.entries.len() > self.kept_at_most() {
            self.entries.retain(|entry| entry.request.is_some());
            self.first_timed = 0;
        }
        while self.entries.get(self.first_timed).is_some_and(|entry| !entry.is_timed_in_order()) {
            self.first_timed += 1;
        }
        self.settle_stragglers();
        if self.entries.is_empty() {
            self.latest = None;
        }
    }

    fn settle_stragglers(&mut self) {
        while let Some(&Reverse((_, id))) = self.stragglers.peek() {
            if self.find(id).is_some() {
                break;
            }
            self.stragglers.pop();
        }
        if self.stragglers.len() > self.kept_at_most() {
            let mut stragglers = core::mem::take(&mut self.stragglers);
            stragglers.retain(|&Reverse((_, id))| self.find(id).is_some());
            self.stragglers = stragglers;
        }
    }

    /// As many as wait may be gaps, or stragglers that have gone.
    const fn kept_at_most(&self) -> usize {
        2 * self.waiting + Self::GAPS_TOLERATED
    }

    /// So few of them are not worth a sweep.
    const GAPS_TOLERATED: usize = 32;
}

impl<W> Entry<W> {
    fn is_timed_in_order(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.in_order && request.deadline.is_some())
    }

    fn due(&self) -> Option<(Instant, WaiterId)> {
        Some((self.request.as_ref()?.deadline?, self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::invariants::tests::{assert_found, busy, idle};

    /// Requests 4, 6 and 7 wait, with a gap where 5 was. 4 is timed in order, 7 a straggler.
    #[test]
    fn a_queue_can_be_wrong() {
        assert_found(busy(), |it| it.queue.waiting = 2, "who waits is counted");
        assert_found(busy(), |it| it.queue.entries.swap(0, 2), "FIFO");
        let first = WaiterId(1);
        let gap = |it: &mut VecDeque<_>| it.push_front(Entry { id: first, request: None });
        assert_found(busy(), |it| gap(&mut it.queue.entries), "no gap in front");
        assert_found(busy(), |it| it.queue.first_timed = 1, "the first in order is known");
        let earliest = "the earliest deadline is known";
        assert_found(busy(), |it| it.queue.stragglers.clear(), earliest);
        let latest = Some(Instant::ORIGIN);
        assert_found(idle(), |it| it.queue.latest = latest, "a clean end");
        let due = Reverse((Instant::ORIGIN, first));
        assert_found(idle(), |it| it.queue.stragglers.push(due), earliest);
    }

    #[test]
    fn what_has_gone_can_be_remembered() {
        let forgotten = "who has gone is forgotten";
        let late = |number| Reverse((Instant::from_nanos(u64::MAX), WaiterId(number)));
        let mut pool = busy();
        // Three wait, and one of them is a straggler that exists.
        pool.queue.stragglers.extend((10..10 + 2 * 3 + 32 - 1).map(late));
        assert_found(pool, |it| it.queue.stragglers.push(late(9)), forgotten);

        let gap = |number| Entry { id: WaiterId(number), request: None };
        let mut pool = busy();
        // Besides the gap that is there.
        pool.queue.entries.extend((10..10 + 3 + 32 - 1).map(gap));
        assert_found(pool, |it| it.queue.entries.push_back(gap(99)), forgotten);
    }

    #[test]
    fn stragglers_that_have_gone_are_forgotten_in_time() {
        let mut pool = busy();
        let late = |number| Reverse((Instant::from_nanos(u64::MAX), WaiterId(number)));
        let there = pool.queue.stragglers.len();
        pool.queue.stragglers.extend((10..100).map(late));
        pool.queue.settle_stragglers();
        assert_eq!(pool.queue.stragglers.len(), there);
    }
}

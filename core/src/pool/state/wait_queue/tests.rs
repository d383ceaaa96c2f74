//! The wait queue notices what cannot be.

use super::*;
use crate::pool::invariants::tests::{assert_found, busy, idle};

/// Requests 4, 6 and 7 wait, with a tombstone where 5 was. The deadline of 4 is in order, that
/// of 7 is not.
#[test]
fn a_queue_can_be_wrong() {
    assert_found(busy(), |it| it.queue.waiting = 2, "waiting requests are counted");
    assert_found(busy(), |it| it.queue.entries.swap(0, 2), "first in, first out");
    let first = WaiterId(1);
    let bury = |it: &mut VecDeque<_>| it.push_front(Entry::Tombstone(first));
    assert_found(busy(), |it| bury(&mut it.queue.entries), "no tombstone is in front");
    assert_found(busy(), |it| it.queue.first_timed = 1, "the first deadline in order is known");
    let earliest = "the earliest deadline is known";
    assert_found(busy(), |it| it.queue.out_of_order.clear(), earliest);
    let latest = Some(Instant::ORIGIN);
    assert_found(idle(), |it| it.queue.latest = latest, "an empty queue has no latest deadline");
    let due = Reverse((Instant::ORIGIN, first));
    assert_found(idle(), |it| it.queue.out_of_order.push(due), earliest);
}

#[test]
fn too_much_can_be_kept_of_requests_that_left() {
    let bounded = "tombstones are bounded";
    let late = |number| Reverse((Instant::from_nanos(u64::MAX), WaiterId(number)));
    let mut pool = busy();
    // Three wait, and the deadline of one of them is out of order.
    pool.queue.out_of_order.extend((10..10 + 2 * 3 + 32 - 1).map(late));
    assert_found(pool, |it| it.queue.out_of_order.push(late(9)), bounded);

    let tombstone = |number| Entry::Tombstone(WaiterId(number));
    let mut pool = busy();
    // Besides the tombstone that is there.
    pool.queue.entries.extend((10..10 + 3 + 32 - 1).map(tombstone));
    assert_found(pool, |it| it.queue.entries.push_back(tombstone(99)), bounded);
}

#[test]
fn deadlines_of_requests_that_left_are_swept() {
    let mut pool = busy();
    let late = |number| Reverse((Instant::from_nanos(u64::MAX), WaiterId(number)));
    let there = pool.queue.out_of_order.len();
    pool.queue.out_of_order.extend((10..100).map(late));
    pool.queue.compact_out_of_order();
    assert_eq!(pool.queue.out_of_order.len(), there);
}

//! The outbox, with threads and with panics. With the feature `std` a panic is caught; without, the
//! drainer goes on while it unwinds: each test is for both.

#![expect(clippy::disallowed_types, reason = "an outbox is for shells, which have locks")]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use cenote_core::outbox::{Outbox, drain_some, release};
use cenote_core::pool::{Action, Event, Input, Instant, NoPayload, PoolOptions, PoolState};

#[derive(Default)]
struct Queue {
    outbox: Mutex<Outbox<u32>>,
    performed: Mutex<Vec<u32>>,
}

impl Queue {
    /// Pushes an item. Item 0 panics, and 7 pushes 8.
    fn put(&self, items: &[u32]) {
        let mut guard = self.lock();
        items.iter().for_each(|item| guard.push(*item));
        release(|| self.lock(), guard, |item| self.perform(item));
    }

    fn perform(&self, item: u32) {
        self.performed.lock().expect("no panic under it").push(item);
        assert_ne!(item, 0, "on purpose");
        if item == 7 {
            self.put(&[8]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Outbox<u32>> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn performed(&self) -> Vec<u32> {
        std::mem::take(&mut self.performed.lock().expect("no panic under it"))
    }
}

#[test]
fn items_are_performed_in_order_and_those_that_they_push_come_last() {
    let queue = Queue::default();
    queue.put(&[7, 1]);
    assert_eq!(queue.performed(), [7, 1, 8]);
    assert!(queue.lock().is_idle());
}

#[test]
fn a_panic_keeps_nothing_behind_it_from_being_performed() {
    let queue = Queue::default();
    let outcome = catch_unwind(AssertUnwindSafe(|| queue.put(&[1, 0, 7, 3])));
    assert_eq!(outcome.is_ok(), cfg!(feature = "std"));
    assert_eq!(queue.performed(), [1, 0, 7, 3, 8]);
    assert!(queue.lock().is_idle(), "there is no drainer");
    queue.put(&[4]);
    assert_eq!(queue.performed(), [4], "it goes on");
}

#[test]
fn threads_perform_each_item_once_and_in_order() {
    let queue = Queue::default();
    thread::scope(|scope| {
        for name in [100, 200] {
            let queue = &queue;
            scope.spawn(move || (1..100).for_each(|item| queue.put(&[name + item])));
        }
    });
    let performed = queue.performed();
    for name in [100, 200] {
        let own = performed.iter().filter(|item| **item / 100 * 100 == name);
        assert!(own.copied().eq(name + 1..name + 100), "{performed:?}");
    }
}

#[test]
fn a_thread_hands_over_what_is_left_in_order() {
    let queue = Queue::default();
    let turn = |batch| {
        drop(drain_some(2, || queue.lock(), batch, |item| queue.perform(item)));
        queue.performed()
    };
    [7, 1, 2].into_iter().for_each(|item| queue.lock().push(item));
    let batch = queue.lock().claim().expect("they were pushed");
    assert_eq!(turn(batch), [7, 1]);
    queue.lock().push(3);
    assert!(queue.lock().claim().is_none(), "the rest is left to another");
    assert!(!queue.lock().is_idle());
    let rest = || queue.lock().claim_rest(2);
    assert_eq!(turn(rest()), [2, 8]);
    assert_eq!(queue.lock().queued(), 1);
    queue.lock().hand_over();
    let rest = queue.lock().claim().expect("it is the next one's");
    assert_eq!(turn(rest), [3]);
    assert!(queue.lock().is_idle(), "nothing is left, and no drainer");
}

#[test]
fn it_is_a_sink_for_actions() {
    let mut outbox = Outbox::default();
    let now = Instant::ORIGIN;
    let mut pool = PoolState::<NoPayload>::new(now, PoolOptions::default(), &mut outbox).unwrap();
    pool.handle(now, Input::Ready, &mut outbox).unwrap();
    let ready = Action::EmitEvent(Event::ConnectionPoolReady);
    assert_eq!(outbox.claim().unwrap().pop_back(), Some(ready));
}

#[test]
fn a_child_process_forgets_what_is_queued_and_its_drainer() {
    let outbox = Mutex::new(Outbox::new(VecDeque::from([1])));
    let lock = || outbox.lock().expect("no panic");
    lock().push(2);
    assert_eq!(format!("{:?}", *lock()), "Outbox { waiting: 2, is_drained: false }");
    let of_parent = lock().claim().expect("they were queued");
    lock().push(3);
    assert!(lock().claim().is_none(), "the parent drains");
    assert_eq!((of_parent.len(), lock().forget().queued()), (2, 1));
    assert!(lock().is_idle());
}

//! Threads that put items into an outbox, items that put more, and items that panic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use cenote_core::outbox::{self, Outbox};
use loom::sync::{Mutex, MutexGuard};
use loom::thread;

use self::Item::{Panics, Plain, Puts};
use super::check;

/// What an item does when it is performed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Plain(u8),
    /// Puts two more.
    Puts(u8),
    Panics(u8),
}

struct Inner {
    outbox: Outbox<Item>,
    /// In the order in which they were put.
    put: Vec<Item>,
}

struct Queue {
    inner: Mutex<Inner>,
    /// `std`'s, because they belong to the test: no place where threads interleave.
    performed: std::sync::Mutex<Vec<Item>>,
    is_performing: AtomicBool,
    /// How many items a thread performs.
    most: usize,
}

impl AsMut<Outbox<Item>> for Inner {
    fn as_mut(&mut self) -> &mut Outbox<Item> {
        &mut self.outbox
    }
}

impl Queue {
    fn open(most: usize) -> Arc<Self> {
        let inner = Inner { outbox: Outbox::default(), put: Vec::new() };
        let (performed, is_performing) = Default::default();
        Arc::new(Self { inner: Mutex::new(inner), performed, is_performing, most })
    }

    fn put(&self, items: &[Item]) {
        let mut inner = self.lock();
        for item in items {
            inner.outbox.push(*item);
            inner.put.push(*item);
        }
        let batch = inner.outbox.claim();
        drop(inner);
        // Taking the lock shows that it was given back: otherwise the model ends in a deadlock.
        drop(self.lock());
        if let Some(batch) = batch {
            let perform = |item| self.perform(item);
            let mut inner = outbox::drain_some(self.most, || self.lock(), batch, perform);
            if inner.outbox.queued() > 0 {
                inner.outbox.hand_over();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn perform(&self, item: Item) {
        assert!(!self.is_performing.swap(true, Ordering::SeqCst), "two at a time");
        // The same, and other threads run in the middle.
        drop(self.lock());
        self.performed.lock().expect("no panic").push(item);
        if let Puts(name) = item {
            self.put(&[Plain(name + 1), Plain(name + 2)]);
        }
        self.is_performing.store(false, Ordering::SeqCst);
        if let Panics(_) = item {
            // Quietly: a panic with a payload and no message.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }

    /// All was performed, in the order in which it was put, and the next one will be, too.
    fn judge(&self) {
        while self.lock().outbox.queued() > 0 {
            self.put(&[]);
        }
        self.judge_order();
        self.put(&[Plain(99)]);
        self.judge_order();
    }

    fn judge_order(&self) {
        let put = self.lock().put.clone();
        assert_eq!(*self.performed.lock().expect("no panic"), put);
    }
}

/// Each thread puts its batches, one after the other.
fn race(preemptions: impl Into<Option<usize>>, threads: &'static [&'static [&'static [Item]]]) {
    race_in_turns(usize::MAX, preemptions, threads);
}

/// Each thread performs so many items at most.
fn race_in_turns(
    most: usize,
    preemptions: impl Into<Option<usize>>,
    threads: &'static [&'static [&'static [Item]]],
) {
    check(preemptions, move || {
        let queue = Queue::open(most);
        let others: Vec<_> = threads
            .iter()
            .map(|batches| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || batches.iter().for_each(|batch| queue.put(batch)))
            })
            .collect();
        for other in others {
            other.join().expect("no panic gets out");
        }
        queue.judge();
    });
}

#[test]
fn two_threads_keep_the_order() {
    race(None, &[&[&[Plain(0)], &[Plain(1)]], &[&[Plain(10), Plain(11)], &[Plain(12)]]]);
}

#[test]
fn three_threads_keep_the_order() {
    race(4, &[&[&[Plain(0)], &[Plain(1)]], &[&[Plain(10)], &[Plain(11)]], &[&[Plain(20)]]]);
}

#[test]
fn what_is_put_while_an_item_is_performed_waits_for_its_turn() {
    race(None, &[&[&[Puts(0)]], &[&[Plain(10)], &[Puts(20)]]]);
}

#[test]
fn an_item_that_panics_harms_no_other() {
    race(None, &[&[&[Panics(0), Plain(1)]], &[&[Plain(10), Panics(11)], &[Puts(12)]]]);
}

#[test]
fn what_a_thread_leaves_is_taken_by_the_next_in_order() {
    race_in_turns(1, None, &[&[&[Puts(0), Plain(3)], &[]], &[&[Plain(10), Panics(11)], &[]]]);
}

#[test]
fn a_batch_without_items_leaves_no_trace() {
    race(None, &[&[&[], &[Plain(0)], &[]], &[&[Plain(10)], &[]]]);
}

//! Many threads, some of whose check-outs time out or are cancelled.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::trace::JournalOptions;
use cenote_shell::trace::Recording;

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, failure, ready, unobserved, until};
use crate::recording::shared_buffer::{SharedBuffer, steps};

on_all_runtimes!(
    the_pool_size_holds_and_nothing_is_lost,
    what_many_threads_do_is_recorded_in_the_order_of_the_machine,
    a_clear_fails_all_who_wait,
);

const MAX: u32 = 8;

// WQ-02, PS-03, PS-11, EV-26
// Reports PgDog#1361, HikariCP#2366: with more callers than connections none is served any more.
fn the_pool_size_holds_and_nothing_is_lost<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(MAX));
    crowd::<R>(&pool);
    assert_eq!(gate.alive(), [0; 0]);
}

/// Without subscribers, and not by the entry points that build no input: neither is there while a pool is recorded.
fn what_many_threads_do_is_recorded_in_the_order_of_the_machine<R: TestRuntime>() {
    let gate = Gate::open();
    [20, 40].iter().for_each(|number| gate.refuse(*number));
    let buffer = SharedBuffer::default();
    let journal = JournalOptions::default()
        .with_actions(true)
        .with_fingerprint_every(1)
        .with_chunk_bytes(1 << 10)
        .with_backlog(1 << 20);
    let recording = Recording::to_writer(buffer.clone()).with_journal(journal);
    let pool = unobserved::<R::Pool<_>>(&gate, at_most(MAX)).record(recording).build();
    let pool = pool.expect("a pool");
    pool.ready();
    crowd::<R>(&pool);
    pool.end_recording().expect("a whole trace");
    // Each action and each fingerprint is compared with the recording.
    let steps = steps(&buffer.read());
    assert!(steps.iter().all(|step| !step.refused && step.lost_before.is_none()));
    let kinds: BTreeSet<_> = steps.iter().map(|step| step.input.name()).collect();
    let mut expected = BTreeSet::from([
        "CheckOutRequested",
        "CheckedIn",
        "Clear",
        "Close",
        "EstablishFailed",
        "EstablishSucceeded",
        "Ready",
        "Timer",
    ]);
    expected.extend(R::CAN_GIVE_UP.then_some("CheckOutCancelled"));
    assert_eq!(kinds, expected);
}

/// More than are answered in one turn.
fn a_clear_fails_all_who_wait<R: TestRuntime>() {
    const THREADS: u64 = 600;
    let pool = unobserved::<R::Pool<_>>(&Gate::open(), at_most(1)).build().expect("a pool");
    pool.ready();
    let held = pool.check_out().expect("a connection");
    thread::scope(|scope| {
        let callers: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| pool.check_out().err())).collect();
        until(|| pool.snapshot().waiting == THREADS);
        pool.clear(failure(), false);
        for caller in callers {
            let error = caller.join().expect("no panic").expect("the pool was cleared");
            assert!(error.to_string().contains("cleared"), "{error}");
        }
    });
    drop(held);
    pool.close();
}

/// Sixty-four threads use the pool, which is closed then.
fn crowd<R: TestRuntime>(pool: &R::Pool<Gate>) {
    let out = AtomicU32::new(0);
    thread::scope(|scope| {
        for thread in 0..64_u64 {
            let out = &out;
            scope.spawn(move || {
                for round in 0..200_u64 {
                    if (thread + round) % 5 == 0 {
                        // In time, or not, or already too late.
                        let timeout = Duration::from_micros((thread * 7 + round * 13) % 300);
                        drop(match round % 2 == 0 && R::CAN_GIVE_UP {
                            true => R::check_out_or_give_up(pool, timeout),
                            false => Some(pool.check_out_before(Instant::now() + timeout)),
                        });
                    }
                    let Ok(mut connection) = pool.check_out() else { continue };
                    assert!(out.fetch_add(1, Ordering::SeqCst) < MAX);
                    thread::yield_now();
                    connection.broken = (thread + round) % 31 == 0;
                    out.fetch_sub(1, Ordering::SeqCst);
                    drop(connection);
                    if thread == 0 && round % 50 == 0 {
                        pool.clear(failure(), false);
                        pool.ready();
                    }
                }
            });
        }
    });
    assert_eq!(out.load(Ordering::SeqCst), 0);
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
    pool.close();
    assert_eq!(pool.snapshot().total, 0);
}

//! Wakers: to call or drop one may run or drop a task and its guards, which use the pool.

use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use cenote_core::pool::Purpose;
use cenote_shell::pool::Until;
use cenote_tokio::Pool;

use super::world::{Gate, at_most, failure, ready};

/// Much longer than these tests take.
const HUNG: Duration = Duration::from_secs(30);

/// Uses the pool when it is dropped, as the guards of a task do.
struct HoldsTask(Pool<Gate>);

impl Wake for HoldsTask {
    fn wake(self: Arc<Self>) {}
}

impl Drop for HoldsTask {
    fn drop(&mut self) {
        drop(self.0.try_check_out());
    }
}

/// Waits for the only connection, and calls `act` meanwhile.
async fn while_a_check_out_waits(act: impl FnOnce(&Pool<Gate>, &mut dyn FnMut(&Waker) -> bool)) {
    let (pool, _) = ready(&Gate::open(), at_most(1));
    let held = pool.check_out().await.expect("a connection");
    {
        let mut waiting = pin!(pool.check_out());
        let mut poll = |waker: &Waker| {
            matches!(waiting.as_mut().poll(&mut Context::from_waker(waker)), Poll::Ready(_))
        };
        let first = Waker::from(Arc::new(HoldsTask(pool.clone())));
        assert!(!poll(&first), "the connection is in use");
        drop(first);
        act(&pool, &mut poll);
    }
    drop(held);
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
}

/// Polls its future when it is woken, and drops it, as an executor without a queue does.
struct PollsAtOnce {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    was_ready: AtomicBool,
}

impl PollsAtOnce {
    fn waiting(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
        let future = Mutex::new(Some(future));
        let task = Arc::new(Self { future, was_ready: AtomicBool::new(false) });
        Arc::clone(&task).wake();
        assert!(!task.was_ready.load(Ordering::Relaxed));
        task
    }
}

impl Wake for PollsAtOnce {
    fn wake(self: Arc<Self>) {
        let Some(mut future) = self.future.lock().expect("no panic").take() else { return };
        let waker = Waker::from(Arc::clone(&self));
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.was_ready.store(true, Ordering::Relaxed);
        } else {
            *self.future.lock().expect("no panic") = Some(future);
        }
    }
}

/// In a thread of its own, because a deadlock would block it.
fn without_deadlock<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(test());
        done.send(()).expect("the test listens");
    });
    match is_done.recv_timeout(HUNG) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the pool waits for itself"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().expect("no panic"),
    }
}

#[test]
fn a_replaced_waker_is_dropped_without_the_lock() {
    without_deadlock(|| while_a_check_out_waits(|_, poll| assert!(!poll(Waker::noop()))));
}

#[test]
fn the_waker_of_a_cancelled_check_out_is_dropped_without_the_lock() {
    without_deadlock(|| while_a_check_out_waits(|_, _| {}));
}

#[test]
fn the_waker_of_a_failed_check_out_is_woken_without_the_lock() {
    without_deadlock(|| {
        while_a_check_out_waits(|pool, poll| {
            pool.clear(failure(), false);
            assert!(poll(Waker::noop()), "the pool was cleared");
        })
    });
}

/// The check-out is cancelled, and its slot is free for the next caller.
#[test]
fn a_waker_that_panics_when_it_is_cloned_leaves_no_check_out_behind() {
    without_deadlock(|| async {
        let (pool, _) = ready(&Gate::open(), at_most(1));
        let held = pool.check_out().await.expect("a connection");
        let request = || {
            // With a payload and no message, so that nothing is printed.
            let waker = || std::panic::resume_unwind(Box::new("on purpose"));
            let (mut until, caller) = (Until::Timeout, Location::caller());
            pool.driver().request(&mut until, Purpose::Other, caller, waker).is_ok()
        };
        assert!(catch_unwind(AssertUnwindSafe(request)).is_err());
        assert_eq!(pool.snapshot().waiting, 0);
        let mut next = pin!(pool.check_out());
        assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(held);
        assert_eq!(next.await.expect("a connection").number, 1);
    });
}

#[test]
fn a_caller_of_close_may_be_polled_by_its_waker() {
    without_deadlock(|| async {
        let (pool, _) = ready(&Gate::open(), at_most(1));
        let held = pool.check_out().await.expect("a connection");
        let closing = PollsAtOnce::waiting(async move { pool.close().await });
        drop(held);
        assert!(closing.was_ready.load(Ordering::Relaxed));
    });
}

#[test]
fn a_user_of_an_interrupted_connection_may_be_polled_by_its_waker() {
    without_deadlock(|| async {
        let (pool, _) = ready(&Gate::open(), at_most(1));
        let held = pool.check_out().await.expect("a connection");
        let waiting = PollsAtOnce::waiting(async move { drop(held.interrupted().await) });
        pool.clear(failure(), true);
        assert!(waiting.was_ready.load(Ordering::Relaxed));
        assert_eq!(pool.snapshot().in_use, 0);
    });
}

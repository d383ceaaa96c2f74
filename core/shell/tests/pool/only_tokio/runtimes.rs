//! Pools that are used from several runtimes, and runtimes that end before their pools.

use std::panic::catch_unwind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cenote_core::pool::{Purpose, Status};
use cenote_tokio::Pool;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::world::{Gate, Log, at_most, builder, ready, settle};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A runtime with a thread of its own.
fn running() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// A request that waits in `runtime`, with a deadline that is far away or none.
async fn waiting(pool: &Pool<Gate>, has_deadline: bool) -> tokio::task::JoinHandle<&'static str> {
    let pool = pool.clone();
    let deadline = has_deadline.then(|| Instant::now() + Duration::from_secs(3600));
    let request = tokio::spawn(async move {
        match pool.check_out_for(Purpose::Other, deadline).await {
            Ok(_) => "a connection",
            Err(error) => error.name(),
        }
    });
    settle().await;
    request
}

#[test]
fn a_pool_can_be_used_from_other_runtimes_and_with_block_on() {
    let (home, second, third) = (running(), runtime(), running());
    let gate = Gate::open();
    let (pool, _) = home.block_on(async { ready(&gate, at_most(1)) });
    let held = second.block_on(pool.check_out()).unwrap();
    let next = third.spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.map(|connection| connection.number) }
    });
    while pool.snapshot().waiting == 0 {
        thread::yield_now();
    }
    drop(held); // Outside of any runtime.
    assert_eq!(second.block_on(next).unwrap().unwrap(), 1);
    // The other runtimes may end.
    drop(third);
    assert!(second.block_on(pool.check_out()).is_ok());
    drop(second);
    assert_eq!(pool.snapshot().status, Status::Ready);
    home.block_on(pool.close());
}

/// Those in the queue, with and without a deadline, and one whose connection is being opened.
#[test]
fn check_outs_fail_when_the_runtime_ends() {
    let (home, second) = (runtime(), runtime());
    let gate = Gate::closed();
    gate.admit(1);
    let log = Log::default();
    let heard = log.clone();
    let pool = home.block_on(async {
        builder(&gate, at_most(2)).on_event(move |event| heard.push(event)).build().unwrap()
    });
    pool.ready();
    let held = home.block_on(pool.check_out()).unwrap();
    let requests = second.block_on(async {
        [waiting(&pool, false).await, waiting(&pool, false).await, waiting(&pool, true).await]
    });
    home.block_on(settle());
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.pending, snapshot.waiting), (1, 2), "{snapshot}");

    drop(home);
    let heard = requests.map(|request| second.block_on(request).unwrap());
    assert_eq!(heard, ["PoolClosedError"; 3]);

    // Later check-outs fail at once.
    pool.ready();
    let error = second.block_on(pool.check_out()).unwrap_err();
    assert_eq!(error.name(), "PoolClosedError");
    assert_eq!(pool.try_check_out().unwrap_err().name(), "PoolClosedError");
    assert_eq!(second.block_on(pool.warm_up(1)).unwrap_err().name(), "PoolClosedError");

    let soon = Instant::now() + Duration::from_millis(1);
    let still_out = second.block_on(pool.close_before(soon)).unwrap_err();
    assert_eq!(still_out.in_use, 1);
    let closing = second.spawn({
        let pool = pool.clone();
        async move { pool.close().await }
    });
    second.block_on(settle());
    drop(held);
    second.block_on(closing).unwrap();
    assert_eq!(gate.alive(), [0; 0]);
    let told = log.take();
    assert_eq!(told.iter().filter(|name| **name == "ConnectionPoolClosed").count(), 1);
    assert!(told.ends_with(&["ConnectionCheckedIn", "ConnectionClosed"]), "{told:?}");
}

/// Not when the last handle is dropped.
#[test]
fn idle_connections_are_closed_with_the_runtime() {
    let gate = Gate::open();
    let home = running();
    let (pool, _) = home.block_on(async { ready(&gate, at_most(3)) });
    home.block_on(pool.warm_up(3)).unwrap();
    assert_eq!(gate.alive().len(), 3);
    home.shutdown_timeout(Duration::from_secs(30));
    assert_eq!((pool.snapshot().status, gate.alive()), (Status::Closed, Vec::new()));
    drop(pool);
}

/// With a handle of a runtime that has ended.
#[test]
fn a_pool_made_after_the_end_is_closed() {
    let (home, second) = (runtime(), runtime());
    let handle = home.handle().clone();
    drop(home);
    let late = handle.enter();
    let (pool, _) = ready(&Gate::open(), at_most(1));
    drop(late);
    assert_eq!(second.block_on(pool.check_out()).unwrap_err().name(), "PoolClosedError");
    second.block_on(pool.close());
}

/// The pool would close as soon as its timer is due.
#[test]
fn a_runtime_without_time_is_refused() {
    let home = Builder::new_current_thread().build().expect("a runtime");
    let inside = home.enter();
    let made = catch_unwind(|| builder(&Gate::open(), at_most(1)).build());
    assert!(made.is_err());
    drop(inside);
}

/// The caller waits on the pool's runtime instead, and without any runtime after that has ended.
#[test]
fn a_caller_needs_no_runtime_with_time() {
    let (home, bare) = (running(), Builder::new_current_thread().build().expect("a runtime"));
    let (pool, _) = home.block_on(async { ready(&Gate::open(), at_most(1)) });
    let held = home.block_on(pool.check_out()).unwrap();
    let soon = || Instant::now() + Duration::from_millis(20);
    let still_out = bare.block_on(pool.close_before(soon())).unwrap_err();
    assert_eq!(still_out.in_use, 1);
    let still_out = smol::block_on(pool.close_before(soon())).unwrap_err();
    assert_eq!(still_out.in_use, 1);
    drop(home);
    for deadline in [soon(), soon()] {
        let still_out = smol::block_on(pool.close_before(deadline)).unwrap_err();
        assert_eq!(still_out.in_use, 1);
        assert!(Instant::now() >= deadline);
    }
    assert_eq!(bare.block_on(pool.close_before(soon())).unwrap_err().in_use, 1);
    drop(held);
    assert!(bare.block_on(pool.close_before(soon())).is_ok());
}

#[test]
fn the_runtime_may_end_while_threads_use_the_pool() {
    for _ in 0..20 {
        let gate = Gate::open();
        let home = running();
        let (pool, _) = home.block_on(async { ready(&gate, at_most(2)) });
        let (done, all_done) = mpsc::channel();
        for _ in 0..8 {
            let (pool, done) = (pool.clone(), done.clone());
            thread::spawn(move || {
                let own = runtime();
                let error = loop {
                    match own.block_on(pool.check_out()) {
                        Ok(connection) => {
                            drop(connection);
                            // Or the threads report events faster than the runtime's thread delivers them, and
                            // it does not end.
                            thread::sleep(Duration::from_micros(200));
                        }
                        Err(error) => break error,
                    }
                };
                let _ = done.send(error.name());
            });
        }
        while pool.snapshot().connections_created == 0 {
            thread::yield_now();
        }
        drop(home);
        for _ in 0..8 {
            let name = all_done.recv_timeout(Duration::from_secs(30)).expect("no thread hangs");
            assert_eq!(name, "PoolClosedError");
        }
        runtime().block_on(pool.close());
        assert_eq!(gate.alive(), [0; 0]);
    }
}

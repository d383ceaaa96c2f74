//! What is there at once, or nothing.

use std::sync::{Arc, Mutex};

use cenote_core::pool::{Event, PoolOptions};
use std::time::Duration;

use crate::world::{Gate, at_most, builder, failure, ready, settle};

#[tokio::test(start_paused = true)]
async fn what_is_available_and_nothing_else() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(2));
    assert!(pool.try_check_out().unwrap().is_none(), "there is room, but nothing is made");
    assert_eq!(pool.snapshot().connections_created, 0);

    drop(pool.check_out().await.unwrap());
    log.take();
    let connection = pool.try_check_out().unwrap().expect("it is there");
    assert_eq!(connection.id(), 1);
    assert!(pool.try_check_out().unwrap().is_none(), "it is out");
    drop(connection);
    assert_eq!(
        log.take(),
        [
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckOutStarted",
            "ConnectionCheckOutFailed",
            "ConnectionCheckedIn",
        ]
    );
    assert_eq!(pool.snapshot().connections_created, 1);
}

/// Dozens of them before and after a connection comes back change nothing for who waits.
#[tokio::test(start_paused = true)]
async fn who_waits_goes_first() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let held = pool.check_out().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let waiting: Vec<_> = (0..3)
        .map(|number| {
            let (pool, order) = (pool.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                let connection = pool.check_out().await.unwrap();
                order.lock().unwrap().push(number);
                assert!(pool.try_check_out().unwrap().is_none());
                drop(connection);
                // Two wait, so that this one has gone to the first of them.
                assert!(number == 2 || pool.try_check_out().unwrap().is_none());
            })
        })
        .collect();
    settle().await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(pool.snapshot().waiting, 3, "it never waits itself");
    drop(held);
    assert!(pool.try_check_out().unwrap().is_none(), "it is the first one's");
    for task in waiting {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    assert!(pool.try_check_out().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_paused_or_closed_says_so() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, PoolOptions::default());
    drop(pool.check_out().await.unwrap());
    pool.clear(failure(), false);
    assert_eq!(pool.try_check_out().unwrap_err().name(), "PoolClearedError");
    pool.ready();
    pool.close().await;
    assert_eq!(pool.try_check_out().unwrap_err().name(), "PoolClosedError");
}

/// One that idled out is not handed out, as with any check-out (CO-10).
#[tokio::test(start_paused = true)]
async fn what_has_perished_is_not_there() {
    let gate = Gate::open();
    let options = at_most(1).with_max_idle_time(Duration::from_secs(1));
    let (pool, _) = ready(&gate, options);
    drop(pool.check_out().await.unwrap());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn nothing_there_is_told_as_a_timeout_without_a_wait() {
    let gate = Gate::open();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let pool = builder(&gate, at_most(1))
        .on_event(move |event| {
            if let Event::ConnectionCheckOutFailed { error, duration } = &event.event {
                heard.lock().unwrap().push((error.reason().as_str(), *duration));
            }
        })
        .build()
        .unwrap();
    pool.ready();
    tokio::time::advance(Duration::from_millis(5)).await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(*told.lock().unwrap(), [("timeout", Duration::ZERO)]);
}

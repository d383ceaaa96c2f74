//! `try_check_out`, the queue and time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_core::pool::Event;

use super::world::{Gate, at_most, builder, ready, settle};

/// Calls before and after a check-in do not change which caller gets the connection.
#[tokio::test(start_paused = true)]
async fn callers_that_wait_go_first() {
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
                // Another one waits, so that it has got the connection.
                assert!(number == 2 || pool.try_check_out().unwrap().is_none());
            })
        })
        .collect();
    settle().await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(pool.snapshot().waiting, 3, "it never waits itself");
    drop(held);
    assert!(pool.try_check_out().unwrap().is_none(), "it is delivered to the first caller");
    for task in waiting {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    assert!(pool.try_check_out().unwrap().is_some());
}

// CO-10.
#[tokio::test(start_paused = true)]
async fn a_perished_connection_is_not_returned() {
    let gate = Gate::open();
    let options = at_most(1).with_max_idle_time(Duration::from_secs(1));
    let (pool, _) = ready(&gate, options);
    drop(pool.check_out().await.unwrap());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn none_is_reported_as_a_timeout_without_a_wait() {
    let gate = Gate::open();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let pool = builder(&gate, at_most(1))
        .on_event(move |event| {
            if let Event::ConnectionCheckOutFailed { error, duration, .. } = &event.event {
                heard.lock().unwrap().push((error.reason().as_str(), duration.get()));
            }
        })
        .build()
        .unwrap();
    pool.ready();
    tokio::time::advance(Duration::from_millis(5)).await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(*told.lock().unwrap(), [("timeout", Duration::ZERO)]);
}

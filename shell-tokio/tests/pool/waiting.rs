//! Who waits, for how long, and who comes first.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_core::pool::{CheckOutError, PoolOptions};
use tokio::time::{Instant, advance, timeout};

use crate::world::{Gate, at_most, failure, ready, settle};

#[tokio::test(start_paused = true)]
async fn a_connection_is_made_once_and_used_again() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(1));
    for _ in 0..3 {
        assert_eq!(pool.check_out().await.unwrap().number, 1);
    }
    assert_eq!(
        log.take(),
        [
            "ConnectionPoolCreated",
            "ConnectionPoolReady",
            "ConnectionCheckOutStarted",
            "ConnectionCreated",
            "ConnectionReady",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn first_come_first_served() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let first = pool.check_out().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let (pool, order) = (pool.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                let _connection = pool.check_out().await.unwrap();
                order.lock().unwrap().push(number);
            })
        })
        .collect();
    settle().await;
    assert_eq!(pool.snapshot().waiting, 20);
    drop(first);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_after_the_time_that_was_set_and_says_why() {
    let gate = Gate::open();
    let options = at_most(1).with_wait_queue_timeout(Duration::from_millis(100));
    let (pool, _) = ready(&gate, options);
    let held = pool.check_out().await.unwrap();
    let began = Instant::now();
    let error = pool.check_out().await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_millis(100));
    assert!(error.is_timeout());
    let text = error.to_string();
    assert!(text.contains("total 1/1") && text.contains("in use 1"), "{text}");

    // The caller's own deadline counts instead, be it earlier or later (CS-07).
    for wait in [10, 500] {
        let began = Instant::now();
        let deadline = began + Duration::from_millis(wait);
        assert!(pool.check_out_before(deadline).await.unwrap_err().is_timeout());
        assert_eq!(began.elapsed(), Duration::from_millis(wait));
    }
    drop(held);
    assert!(pool.check_out().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_give_up_each_at_its_time() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let _held = pool.check_out().await.unwrap();
    let began = Instant::now();
    let tasks: Vec<_> = (0..1000_u64)
        .map(|number| {
            let pool = pool.clone();
            // Later requests give up earlier, so that the timer is set anew again and again.
            let deadline = began + Duration::from_millis(1001 - number);
            tokio::spawn(async move {
                assert!(pool.check_out_before(deadline).await.unwrap_err().is_timeout());
                assert_eq!(Instant::now(), deadline);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(pool.snapshot().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_paused_pool_hands_nothing_out() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, PoolOptions::default());
    pool.clear(failure(), false);
    let error = pool.check_out().await.unwrap_err();
    assert!(matches!(error.error(), CheckOutError::PoolCleared { cause: Some(_) }), "{error}");
    assert!(error.is_retryable());
    pool.ready();
    assert!(pool.check_out().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failed_connection_fails_the_request_that_it_was_for() {
    let gate = Gate::closed();
    gate.refuse(1);
    let (pool, log) = ready(&gate, at_most(1));
    let (first, second) = (pool.clone(), pool.clone());
    let first = tokio::spawn(async move { first.check_out().await.map(drop) });
    settle().await;
    let second = tokio::spawn(async move { second.check_out().await.unwrap().number });
    settle().await;
    gate.admit(2);
    let error = first.await.unwrap().unwrap_err();
    assert_eq!(error.name(), "ConnectionError");
    assert_eq!(second.await.unwrap(), 2, "the next one gets a connection of its own");
    assert!(log.take().contains(&"ConnectionCheckOutFailed"));
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_and_the_minimum_is_kept() {
    let gate = Gate::open();
    let options = at_most(4).with_min_pool_size(2).with_max_idle_time(Duration::from_secs(1));
    let (pool, _) = ready(&gate, options);
    settle().await;
    assert_eq!(gate.alive(), [1, 2]);
    advance(Duration::from_secs(2)).await;
    settle().await;
    assert_eq!(gate.alive(), [3, 4], "both idled out, and others took their places");
    assert_eq!(pool.snapshot().available, 2);
}

#[tokio::test(start_paused = true)]
async fn a_limit_around_a_check_out_gives_it_up() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let held = pool.check_out().await.unwrap();
    assert!(timeout(Duration::from_millis(5), pool.check_out()).await.is_err());
    assert_eq!(pool.snapshot().waiting, 0);
    drop(held);
    assert_eq!(pool.snapshot().available, 1);
}

#[tokio::test(start_paused = true)]
async fn scoped_use_gives_back_whatever_happens() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let number = pool
        .with_connection(async |connection| Ok::<_, Box<dyn std::error::Error>>(connection.number))
        .await;
    assert_eq!(number.unwrap(), 1);
    let failed = pool
        .with_connection(async |connection| {
            connection.broken = true;
            Err::<(), Box<dyn std::error::Error>>("no".into())
        })
        .await;
    assert_eq!(failed.unwrap_err().to_string(), "no");
    settle().await;
    assert_eq!((pool.snapshot().total, gate.alive()), (0, Vec::new()), "it was found broken");
}

/// Whoever finds a connection each time has nothing to wait for, and yet is not alone.
#[tokio::test(start_paused = true)]
async fn who_is_always_served_at_once_lets_others_run() {
    let (pool, _) = ready(&Gate::open(), at_most(1));
    drop(pool.check_out().await.unwrap());
    let other = tokio::spawn(async {});
    let mut pairs = 0;
    while !other.is_finished() {
        drop(pool.check_out().await.unwrap());
        pairs += 1;
        assert!(pairs < 10_000, "nobody else runs");
    }
}

/// CS-03: the caller's deadline holds, whatever the connector thinks of it.
#[tokio::test(start_paused = true)]
async fn a_connector_that_looks_at_no_deadline_has_one() {
    let (pool, log) = ready(&Gate::closed(), at_most(1));
    let begin = Instant::now();
    let error = pool.check_out_before(begin + Duration::from_secs(3)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(begin.elapsed().as_secs(), 3);
    assert_eq!(pool.snapshot().pending, 0);
    assert_eq!(log.take()[4..], ["ConnectionClosed", "ConnectionCheckOutFailed"]);
}

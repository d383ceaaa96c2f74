//! Beginning and end, and what changes in between.

use std::sync::Arc;
use std::time::Duration;

use cenote_check::EventGuard;
use cenote_core::pool::{PoolOptions, Status};
use cenote_tokio::{BuildError, OperationError};

use crate::world::{Gate, at_most, builder, failure, judged_by, ready, settle, unjudged};

#[tokio::test(start_paused = true)]
async fn a_connection_that_panics_when_it_is_closed_is_gone_all_the_same() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(2));
    let [mut first, mut second] =
        [pool.check_out().await.unwrap(), pool.check_out().await.unwrap()];
    (first.panics, second.panics) = (true, true);
    drop((first, second));
    pool.close().await;
    assert_eq!(log.take().iter().filter(|name| **name == "ConnectionClosed").count(), 2);
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_closes_the_pool() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(2));
    let held = pool.check_out().await.unwrap();
    drop(pool.check_out().await.unwrap());
    let clone = pool.clone();
    drop(pool);
    assert_eq!(clone.snapshot().status, Status::Ready);
    drop(clone);
    assert!(log.take().contains(&"ConnectionPoolClosed"));
    assert_eq!(gate.alive(), [1], "what is out stays out");
    drop(held);
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_fails_what_runs_at_once() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(2));
    let mut busy = pool.check_out().await.unwrap();
    let idle = pool.check_out().await.unwrap();
    let running = tokio::spawn(async move {
        let outcome = busy.run(async |_| std::future::pending().await).await;
        let outcome: Result<(), _> = outcome;
        (busy, outcome)
    });
    settle().await;
    pool.clear(failure(), true);
    let (mut busy, outcome) = running.await.unwrap();
    assert!(matches!(outcome, Err(OperationError::Interrupted(_))), "{outcome:?}");
    assert!(outcome.unwrap_err().is_retryable());
    // Neither does anything run on it later.
    assert!(busy.run(async |_| Ok(())).await.is_err());
    assert!(idle.is_stale());
    let _ = idle.interrupted().await;
    drop((busy, idle));
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn options_change_while_it_runs() {
    let sentry = Arc::new(EventGuard::without_clock());
    let pool = judged_by(&sentry, unjudged(&Gate::open(), at_most(1))).build().unwrap();
    pool.ready();
    let _first = pool.check_out().await.unwrap();
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.unwrap().number }
    });
    settle().await;
    sentry.options_change(&at_most(2), pool.address());
    pool.set_options(at_most(2)).unwrap();
    assert_eq!(waiting.await.unwrap(), 2);
    let refused = pool.set_options(at_most(2).with_min_pool_size(3));
    assert!(refused.is_err());
    assert_eq!(pool.options(), at_most(2));
}

#[tokio::test(start_paused = true)]
async fn bad_options_are_refused() {
    let options = PoolOptions::default().with_max_pool_size(1).with_min_pool_size(2);
    let error = builder(&Gate::open(), options).build().unwrap_err();
    assert!(matches!(error, BuildError::Options(_)), "{error}");
}

#[tokio::test]
async fn each_pool_whose_connections_have_a_lifetime_has_chance_of_its_own() {
    let gate = Gate::open();
    let options = at_most(2).with_max_lifetime(Duration::from_secs(600));
    let (pool, _) = ready(&gate, options.clone());
    let (other, _) = ready(&gate, options.clone());
    let seed = pool.options().jitter_seed;
    assert!(seed.is_some() && seed != other.options().jitter_seed);
    pool.set_options(options.clone().with_jitter_seed(7)).unwrap();
    assert_eq!(pool.options().jitter_seed, Some(7));
    pool.set_options(options).unwrap();
    assert!(pool.options().jitter_seed.is_some_and(|seed| seed != 7));
}

//! Beginning and end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use cenote_check::EventGuard;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{PoolOptions, Status};
use cenote_mio::{
    BuildError, Builder, Connector, EventLoop, HandshakeReporter, OperationError, Pool, Target,
};

use crate::world::{Gate, at_most, builder, failure, judged, judged_by, ready, unjudged, until};

#[test]
fn close_waits_until_everything_is_home() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(2));
    let held = pool.check_out().unwrap();
    let is_closed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pool.close();
            is_closed.store(true, Ordering::Relaxed);
        });
        until(|| pool.snapshot().status == Status::Closed);
        assert_eq!(pool.check_out().unwrap_err().name(), "PoolClosedError");
        assert!(!is_closed.load(Ordering::Relaxed));
        drop(held);
    });
    assert_eq!(gate.alive(), [0; 0]);
    assert!(log.take().ends_with(&["ConnectionCheckedIn", "ConnectionClosed"]));
    pool.close(); // Once more is no harm.
}

#[test]
fn close_waits_no_longer_than_it_is_told() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(2));
    let held = pool.check_out().unwrap();
    let deadline = Instant::now() + Duration::from_millis(20);
    let still_out = pool.close_before(deadline).unwrap_err();
    assert!(Instant::now() >= deadline);
    assert_eq!(still_out.in_use, 1);
    drop(held);
    pool.close_before(Instant::now() + Duration::from_secs(60)).unwrap();
    assert_eq!(gate.alive(), [0; 0]);
}

/// Everything is in flight: connections are being opened, are in use, and are waited for.
#[test]
fn a_pool_can_be_closed_at_any_time() {
    let gate = Gate::closed();
    gate.admit(2);
    let (pool, _) = ready(&gate, at_most(4));
    let held = [(); 2].map(|()| pool.check_out().unwrap());
    thread::scope(|scope| {
        let waiting = [(); 20].map(|()| scope.spawn(|| pool.check_out().map(drop)));
        until(|| pool.snapshot().waiting == 18 && pool.snapshot().pending == 2);
        let closing = scope.spawn(|| pool.close());
        for request in waiting {
            assert_eq!(request.join().unwrap().unwrap_err().name(), "PoolClosedError");
        }
        drop(held);
        closing.join().unwrap();
    });
    assert_eq!(gate.alive(), [0; 0]);
}

/// Neither of them waits for itself.
#[test]
fn a_subscriber_may_close_the_pool() {
    for name in ["ConnectionReady", "ConnectionCheckedIn", "ConnectionCheckedOut"] {
        let gate = Gate::open();
        let own: Arc<OnceLock<Pool<Gate>>> = Arc::default();
        let inside = Arc::clone(&own);
        let pool = builder(&gate, at_most(1))
            .on_event(move |event| {
                if event.event.name() == name {
                    inside.get().into_iter().for_each(Pool::close);
                }
            })
            .build()
            .unwrap();
        let _ = own.set(pool.clone());
        pool.ready();
        drop(pool.check_out());
        pool.close();
        assert_eq!(gate.alive(), [0; 0], "{name}");
    }
}

#[test]
fn the_last_handle_closes_the_pool() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(2));
    let held = pool.check_out().unwrap();
    drop(pool.check_out().unwrap());
    let clone = pool.clone();
    drop(pool);
    assert_eq!(clone.snapshot().status, Status::Ready);
    drop(clone);
    until(|| log.take().contains(&"ConnectionPoolClosed"));
    until(|| gate.alive() == [1]); // What is out stays out.
    drop(held);
    until(|| gate.alive().is_empty());
}

#[test]
fn an_interrupt_is_told_to_who_uses_the_connection() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(2));
    let mut busy = pool.check_out().unwrap();
    let idle = pool.check_out().unwrap();
    let outcome = busy.run(|_| {
        pool.clear(failure(), true);
        until(|| idle.is_interrupted()); // After this one.
        Err::<(), _>(failure())
    });
    assert!(matches!(outcome, Err(OperationError::Interrupted(_))), "{outcome:?}");
    assert!(outcome.unwrap_err().is_retryable());
    // Neither does anything run on it later.
    assert!(busy.run(|_| Ok(())).is_err());
    assert!(idle.is_stale() && idle.is_interrupted());
    drop((busy, idle));
    until(|| gate.alive().is_empty());
}

#[test]
fn options_change_while_it_runs() {
    let sentry = Arc::new(EventGuard::without_clock());
    let pool = judged_by(&sentry, unjudged(&Gate::open(), at_most(1))).build().unwrap();
    pool.ready();
    let _first = pool.check_out().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.check_out().unwrap().number);
        until(|| pool.snapshot().waiting == 1);
        sentry.options_change(&at_most(2), pool.address());
        pool.set_options(at_most(2)).unwrap();
        assert_eq!(waiting.join().unwrap(), 2);
    });
    let refused = pool.set_options(at_most(2).with_min_pool_size(3));
    assert!(refused.is_err());
    assert_eq!(pool.options(), at_most(2));
}

#[test]
fn bad_options_are_refused() {
    let options = PoolOptions::default().with_max_pool_size(1).with_min_pool_size(2);
    let error = builder(&Gate::open(), options).build().unwrap_err();
    assert!(matches!(error, BuildError::Options(_)), "{error}");
}

/// A connection that panics when it is closed is gone all the same.
#[test]
fn a_connection_may_panic_when_it_is_closed() {
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            // Quietly: a panic with a payload and no message.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
    struct Makes;
    impl Connector<EventLoop> for Makes {
        type Connection = Fragile;

        async fn connect(
            &self,
            _: Target,
            _: HandshakeReporter,
        ) -> Result<Fragile, ConnectionError> {
            Ok(Fragile)
        }
    }
    let builder = Builder::new("db.example.com".parse().unwrap(), Makes);
    let pool = judged(builder).build().unwrap();
    pool.ready();
    drop(pool.check_out().unwrap());
    pool.clear(failure(), false);
    pool.ready();
    drop(pool.check_out().unwrap());
    pool.close();
    assert_eq!(pool.snapshot().total, 0);
}

/// A connector that panics fails its request, and takes nobody along.
#[test]
fn a_connector_may_panic() {
    struct Panics;
    impl Connector<EventLoop> for Panics {
        type Connection = u64;

        async fn connect(
            &self,
            target: Target,
            _: HandshakeReporter,
        ) -> Result<u64, ConnectionError> {
            if target.connection_id == 1 {
                // Quietly: a panic with a payload and no message.
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            let event_loop = target.runtime;
            event_loop.sleep_until(Instant::now() + Duration::from_millis(1)).await;
            let number = event_loop.on_thread(move || target.connection_id).await;
            number.map_err(|error| ConnectionError::network(Stage::Tcp, error))
        }
    }
    let builder = Builder::new("db.example.com".parse().unwrap(), Panics);
    let pool = judged(builder).build().unwrap();
    pool.ready();
    assert_eq!(pool.check_out().unwrap_err().name(), "ConnectionError");
    assert_eq!(*pool.check_out().unwrap(), 2);
    pool.close();
}

#[test]
fn each_pool_whose_connections_have_a_lifetime_has_chance_of_its_own() {
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

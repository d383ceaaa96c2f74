//! Who watches the server is shown what failed, before the pool hears of it.

use std::sync::{Arc, Mutex};

use cenote_core::error::ConnectionError;
use cenote_core::pool::{PoolOptions, ServiceId, Status};
use cenote_core::sdam::PoolVerdict;
use cenote_tokio::{Builder, Connector, Failure, HandshakeReporter, Pool, Target, Tokio};

use crate::world::{Gate, Log, at_most, builder, failure, judged, settle};

/// What was shown, and whether it cleared the pool.
type Shown = Arc<Mutex<Vec<(u64, bool)>>>;

const CLEAR: PoolVerdict = PoolVerdict::Clear { interrupt: false };

/// A ready pool whose failures clear it.
fn watched(gate: &Gate, options: PoolOptions) -> (Pool<Gate>, Log, Shown) {
    let (log, shown) = (Log::default(), Shown::default());
    let (heard, seen) = (log.clone(), Arc::clone(&shown));
    let pool = builder(gate, options)
        .on_event(move |event| heard.push(event))
        .on_failure(move |failure| note(&seen, failure, CLEAR))
        .build()
        .expect("good options");
    pool.ready();
    (pool, log, shown)
}

fn note(shown: &Shown, failure: &Failure<'_>, verdict: PoolVerdict) {
    let was_current = failure.context(None).current_generation;
    let cleared = failure.clear(verdict);
    assert_eq!(cleared, was_current, "nobody else clears in these tests");
    shown.lock().expect("no panic").push((failure.connection_id(), cleared));
}

fn take(shown: &Shown) -> Vec<(u64, bool)> {
    std::mem::take(&mut shown.lock().expect("no panic"))
}

/// ES-05, T-03: the order that the specification wants.
#[tokio::test(start_paused = true)]
async fn a_failed_establishment_is_shown_first() {
    let gate = Gate::open();
    gate.refuse(1);
    let (pool, log, shown) = watched(&gate, at_most(1));
    let error = pool.check_out().await.unwrap_err();
    assert_eq!(error.name(), "ConnectionError", "{error}");
    assert_eq!(take(&shown), [(1, true)]);
    assert_eq!(
        log.take().split_off(4),
        ["ConnectionPoolCleared", "ConnectionClosed", "ConnectionCheckOutFailed"]
    );
    assert_eq!(pool.snapshot().status, Status::Paused);
}

/// SD-20, T-62: six that fail together clear once, though the pool is ready again in between.
#[tokio::test(start_paused = true)]
async fn connections_that_fail_together_clear_once() {
    let gate = Gate::closed();
    (1..=6).for_each(|number| gate.refuse(number));
    let (pool, log, shown) = watched(&gate, at_most(6).with_max_connecting(6));
    let waiting: Vec<_> = (0..6)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.check_out().await.map(drop) })
        })
        .collect();
    settle().await;
    gate.admit(1);
    settle().await;
    pool.ready();
    gate.admit(5);
    for request in waiting {
        assert!(request.await.unwrap().is_err());
    }
    let (cleared, old): (Vec<_>, Vec<_>) = take(&shown).into_iter().partition(|(_, it)| *it);
    assert_eq!((cleared.len(), old.len()), (1, 5));
    assert_eq!(log.take().iter().filter(|name| **name == "ConnectionPoolCleared").count(), 1);
    assert_eq!(pool.snapshot().status, Status::Ready);
}

#[tokio::test(start_paused = true)]
async fn an_error_in_use_is_shown_before_the_connection_comes_back() {
    let gate = Gate::open();
    let (pool, log, shown) = watched(&gate, at_most(2));
    let mut connection = pool.check_out().await.unwrap();
    let outcome = connection.run(async |_| Err::<(), _>(failure())).await;
    assert!(outcome.is_err());
    assert_eq!(take(&shown), [(1, true)], "at once");
    drop(connection);
    assert_eq!(
        log.take().split_off(6),
        ["ConnectionPoolCleared", "ConnectionCheckedIn", "ConnectionClosed"]
    );

    pool.ready();
    let mut connection = pool.check_out().await.unwrap();
    connection.mark_errored(failure());
    connection.mark_errored(failure());
    assert_eq!(take(&shown), [(2, true), (2, false)], "the second one is old news");
}

/// What says nothing about the server.
#[tokio::test(start_paused = true)]
async fn what_the_pool_or_the_caller_broke_off_is_not_shown() {
    let gate = Gate::closed();
    gate.admit(2);
    let (pool, _, shown) = watched(&gate, at_most(3));
    let mut interrupted = pool.check_out().await.unwrap();
    let mut unread = pool.check_out().await.unwrap();
    let pending = tokio::spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.map(drop) }
    });
    settle().await;
    unread.broken = true;
    drop(unread);
    pool.clear(failure(), true);
    assert_eq!(pending.await.unwrap().unwrap_err().name(), "PoolClearedError");
    assert!(interrupted.run(async |_| Ok(())).await.is_err());
    drop(interrupted);
    assert_eq!(take(&shown), []);
}

#[tokio::test(start_paused = true)]
async fn one_that_panics_keeps_nobody_waiting() {
    let gate = Gate::open();
    gate.refuse(1);
    let panics = |_: &Failure<'_>| std::panic::resume_unwind(Box::new("on purpose"));
    let pool = builder(&gate, at_most(1)).on_failure(panics).build().unwrap();
    pool.ready();
    assert_eq!(pool.check_out().await.unwrap_err().name(), "ConnectionError");
    assert_eq!(pool.check_out().await.unwrap().number, 2);
}

/// A connector that panics fails the request that it was for, and no other.
struct Panics;

impl Connector<Tokio> for Panics {
    type Connection = u64;

    async fn connect(
        &self,
        target: Target,
        _progress: HandshakeReporter,
    ) -> Result<u64, ConnectionError> {
        if target.connection_id == 1 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        Ok(target.connection_id)
    }
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_panics_is_a_failure_like_others() {
    let address = "db.example.com".parse().unwrap();
    let pool = judged(Builder::new(address, Panics)).build().unwrap();
    pool.ready();
    assert_eq!(pool.check_out().await.unwrap_err().name(), "ConnectionError");
    assert_eq!(*pool.check_out().await.unwrap(), 2);
}

/// A connector that panics when it is asked what is wrong with a connection.
struct BadJudge;

impl Connector<Tokio> for BadJudge {
    type Connection = ();

    async fn connect(&self, _: Target, _: HandshakeReporter) -> Result<(), ConnectionError> {
        Ok(())
    }

    fn fault(&self, (): &()) -> Option<ConnectionError> {
        std::panic::resume_unwind(Box::new("on purpose"))
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_judged_comes_back_as_broken() {
    let builder = Builder::new("db.example.com".parse().unwrap(), BadJudge);
    let pool = judged(builder).build().unwrap();
    pool.ready();
    drop(pool.check_out().await.unwrap());
    assert_eq!(pool.snapshot().total, 0);
    pool.close().await;
}

/// Every connection is of its own service, and fails after hello if the service is told.
struct Balanced {
    refuse: u64,
}

const fn service(number: u64) -> ServiceId {
    ServiceId([number as u8; 12])
}

impl Connector<Tokio> for Balanced {
    type Connection = u64;

    async fn connect(
        &self,
        target: Target,
        progress: HandshakeReporter,
    ) -> Result<u64, ConnectionError> {
        progress.handshaken(service(target.connection_id));
        if target.connection_id == self.refuse {
            return Err(failure());
        }
        Ok(target.connection_id)
    }
}

/// LB-21: the service of the connection, and no other.
#[tokio::test(start_paused = true)]
async fn behind_a_load_balancer_a_service_is_cleared() {
    let shown = Shown::default();
    let seen = Arc::clone(&shown);
    let address = "db.example.com".parse().unwrap();
    let pool = judged(Builder::new(address, Balanced { refuse: 2 }))
        .options(at_most(3).with_load_balanced(true))
        .on_failure(move |failure| {
            assert!(failure.context(None).load_balanced);
            assert_eq!(failure.service_id(), Some(service(failure.connection_id())));
            note(&seen, failure, PoolVerdict::ClearService);
        })
        .build()
        .unwrap();
    pool.ready();
    let mut first = pool.check_out().await.unwrap();
    assert!(pool.check_out().await.is_err());
    assert_eq!(take(&shown), [(2, true)]);
    assert!(!first.is_stale());
    first.mark_errored(failure());
    assert!(first.is_stale());
    assert_eq!(take(&shown), [(1, true)]);
    assert_eq!(pool.snapshot().status, Status::Ready);
}

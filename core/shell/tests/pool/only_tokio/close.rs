//! `close` waits for connections that are in use or being opened; `close_before` until its deadline.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::error::ConnectionError;
use cenote_core::pool::{PoolOptions, Status};
use cenote_tokio::{Builder, CloseTimeout, Connector, HandshakeReporter, Target, Tokio};
use tokio::time::Instant;

use super::world::{Gate, at_most, checked, ready, settle};

/// Opens a socket, and then waits for ever.
struct Stuck(Arc<AtomicBool>);

struct Socket(Arc<AtomicBool>);

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Connector<Tokio> for Stuck {
    type Connection = ();
    type Error = ConnectionError;

    async fn connect(&self, _: Target, _: HandshakeReporter) -> Result<(), ConnectionError> {
        self.0.store(true, Ordering::Relaxed);
        let _socket = Socket(Arc::clone(&self.0));
        pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn close_waits_for_a_connection_that_is_being_opened() {
    let is_open = Arc::new(AtomicBool::new(false));
    let address = "localhost".parse().unwrap();
    let pool = checked(Builder::new(address, Stuck(Arc::clone(&is_open)))).build().unwrap();
    pool.ready();
    let request = tokio::spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.map(drop) }
    });
    settle().await;
    assert!(is_open.load(Ordering::Relaxed));
    pool.close().await;
    assert!(!is_open.load(Ordering::Relaxed));
    assert_eq!(request.await.unwrap().unwrap_err().name(), "PoolClosedError");
}

#[tokio::test(start_paused = true)]
async fn at_its_deadline_close_before_returns_and_the_pool_is_closed() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(3));
    let mut held = vec![pool.check_out().await.unwrap(), pool.check_out().await.unwrap()];
    drop(pool.check_out().await.unwrap());
    let began = Instant::now();
    let deadline = began + Duration::from_millis(250);
    let error = pool.close_before(deadline).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_millis(250));
    assert_eq!(error, CloseTimeout { in_use: 2 });
    assert_eq!(
        error.to_string(),
        "the pool is closed, but 2 of its connections are still checked out: each is closed when it \
         comes back"
    );
    assert_eq!((pool.snapshot().status, gate.alive()), (Status::Closed, vec![1, 2]));

    held.pop();
    // A deadline that has passed only counts.
    let error = pool.close_before(began).await.unwrap_err();
    assert_eq!(error.in_use, 1);
    held.pop();
    assert_eq!(pool.close_before(began).await, Ok(()));
    assert_eq!(began.elapsed(), Duration::from_millis(250), "at once");
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn close_before_returns_with_the_last_check_in() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, PoolOptions::default());
    let held = pool.check_out().await.unwrap();
    let check_in = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(held);
    });
    let began = Instant::now();
    assert_eq!(pool.close_before(began + Duration::from_secs(60)).await, Ok(()));
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    check_in.await.unwrap();
}

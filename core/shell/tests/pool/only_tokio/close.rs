//! `close` waits for connections that are in use or being opened; `close_before` until its deadline.

use std::future::pending;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{PoolOptions, Status};
use cenote_tokio::{
    Builder, CloseTimeout, Connector, HandshakeReporter, Pool, PooledConnection, Target, Tokio,
};
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

const MANY: u32 = 1000;

/// Its connections are nothing, but the first that closes gives back what is held here.
#[derive(Clone, Default)]
struct Hoard {
    held: Arc<Mutex<Vec<PooledConnection<Hoard>>>>,
    open: Arc<AtomicU32>,
}

struct Hoarded(Hoard);

impl Drop for Hoarded {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        let held = mem::take(&mut *self.0.held.lock().expect("no panic"));
        drop(held);
    }
}

impl Connector<Tokio> for Hoard {
    type Connection = Hoarded;
    type Error = ConnectionError;

    async fn connect(&self, _: Target, _: HandshakeReporter) -> Result<Hoarded, ConnectionError> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Hoarded(self.clone()))
    }
}

impl Hoard {
    /// A pool whose caller had one connection to close, and performed some of what that has brought about.
    async fn partly_closed(&self) -> Pool<Self> {
        let builder = Builder::new("localhost".parse().expect("an address"), self.clone());
        let pool = builder.replace_options(at_most(MANY)).build().expect("a pool");
        pool.ready();
        let mut held = Vec::new();
        for _ in 0..MANY {
            held.push(pool.check_out().await.expect("a connection"));
        }
        pool.clear(ConnectionError::network(Stage::Operation, "reset"), false);
        let first = held.pop();
        *self.held.lock().expect("no panic") = held;
        drop(first);
        let open = self.open.load(Ordering::Relaxed);
        assert!((1..MANY - 1).contains(&open), "{open}");
        pool
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_leaves_is_done_by_a_task() {
    let hoard = Hoard::default();
    let _pool = hoard.partly_closed().await;
    settle().await;
    assert_eq!(hoard.open.load(Ordering::Relaxed), 0);
}

#[test]
fn what_a_caller_leaves_is_done_by_close_where_nothing_drives_the_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build();
    let (hoard, of_pool) = (Hoard::default(), runtime().expect("a runtime"));
    let pool = of_pool.block_on(hoard.partly_closed());
    runtime().expect("a runtime").block_on(pool.close());
    assert_eq!(hoard.open.load(Ordering::Relaxed), 0);
    assert!(pool.driver().is_drained());
}

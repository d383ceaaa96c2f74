//! A check-out that waits, its answer, and its cancellation, on a real [`Pool`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{Maintenance, PoolOptions};
use cenote_shell::builder::Builder;
use cenote_shell::connection::{Connector, HandshakeReporter, Target};
use cenote_shell::pool;
use loom::future::block_on;
use loom::thread;

use super::check;
use super::runtime::Model;

type Pool = pool::Pool<Model, Counted>;
type PooledConnection = pool::PooledConnection<Model, Counted>;

/// Counts the connections that exist.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicU32>);

struct Socket(Counted);

impl Connector<Model> for Counted {
    type Connection = Socket;
    type Error = ConnectionError;

    async fn connect(
        &self,
        _: Target<Model>,
        _: HandshakeReporter,
    ) -> Result<Socket, ConnectionError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Socket(self.clone()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether the connection is checked out, according to the events.
#[derive(Default)]
struct Turns(AtomicU32);

impl Turns {
    fn see(&self, name: &str) {
        let change = match name {
            "ConnectionCheckedOut" => (0, 1),
            "ConnectionCheckedIn" => (1, 0),
            _ => return,
        };
        let seen = self.0.compare_exchange(change.0, change.1, Ordering::SeqCst, Ordering::SeqCst);
        assert!(seen.is_ok(), "{name} out of order");
    }
}

struct World {
    runtime: Model,
    pool: Pool,
    sockets: Counted,
    turns: Arc<Turns>,
}

impl World {
    /// A ready pool of one connection, which is not there yet.
    fn new() -> Self {
        let (sockets, turns) = (Counted::default(), Arc::<Turns>::default());
        let options =
            PoolOptions::default().with_max_pool_size(1).with_maintenance(Maintenance::Never);
        let address = "localhost".parse().expect("an address");
        let seen = Arc::clone(&turns);
        let pool = Builder::<Pool>::new(address, sockets.clone())
            .replace_options(options)
            .on_event(move |event| seen.see(event.event.name()))
            .build();
        let pool = pool.expect("good options");
        pool.ready();
        let runtime = pool.driver().runtime();
        Self { runtime, pool, sockets, turns }
    }

    /// The connection, checked out.
    fn connect(&self) -> PooledConnection {
        let mut request = check_out(&self.pool);
        look(&mut request).unwrap_or_else(|| {
            self.open();
            block_on(request).expect("a connection")
        })
    }

    /// Lets the runtime open connections.
    fn open(&self) {
        self.runtime.run();
    }

    /// No caller waits, no connection is in use, and the connection can be checked out; then everything closes.
    fn judge(self) {
        let snapshot = self.pool.snapshot();
        assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
        drop(self.connect());
        assert_eq!(self.sockets.0.load(Ordering::SeqCst), 1);
        assert_eq!(self.turns.0.load(Ordering::SeqCst), 0);
        close(&self.pool);
        assert_eq!(self.sockets.0.load(Ordering::SeqCst), 0);
    }
}

type CheckOut = Pin<Box<dyn Future<Output = Result<PooledConnection, PoolError>> + Send>>;

/// Closes the pool, which has to hear of the last connection.
fn close(pool: &Pool) {
    block_on(pool.close());
}

/// Asks, but does not wait yet.
fn check_out(pool: &Pool) -> CheckOut {
    let pool = pool.clone();
    Box::pin(async move { pool.check_out().await })
}

/// Waits for the answer, which must come.
fn wait(request: CheckOut) {
    drop(block_on(request).expect("a connection"));
}

/// Looks once for the answer.
fn look(request: &mut CheckOut) -> Option<PooledConnection> {
    block_on(std::future::poll_fn(|cx| {
        Poll::Ready(match request.as_mut().poll(cx) {
            Poll::Ready(outcome) => Some(outcome.expect("a connection")),
            Poll::Pending => None,
        })
    }))
}

/// Polls so many times, and cancels.
fn give_up(mut request: CheckOut, looks: u32) {
    for _ in 0..looks {
        if look(&mut request).is_some() {
            return;
        }
    }
}

#[test]
fn a_check_in_wakes_the_caller_that_waits() {
    check(None, || {
        let world = World::new();
        let held = world.connect();
        let request = check_out(&world.pool);
        let other = thread::spawn(move || wait(request));
        drop(held);
        other.join().expect("it gets its turn");
        world.judge();
    });
}

#[test]
fn the_last_waker_counts() {
    check(None, || {
        let world = World::new();
        let held = world.connect();
        let request = check_out(&world.pool);
        let other = thread::spawn(move || {
            let mut request = request;
            // Polled with one waker, awaited with another.
            if look(&mut request).is_none() {
                wait(request);
            }
        });
        drop(held);
        other.join().expect("it gets its turn");
        world.judge();
    });
}

#[test]
fn an_answer_that_meets_a_cancellation_is_not_lost() {
    for looks in 1..4 {
        check(None, move || {
            let world = World::new();
            let held = world.connect();
            let request = check_out(&world.pool);
            let other = thread::spawn(move || give_up(request, looks));
            drop(held);
            other.join().expect("no panic");
            world.judge();
        });
    }
}

#[test]
fn the_caller_behind_a_cancelled_one_gets_its_turn() {
    check(4, || {
        let world = World::new();
        let held = world.connect();
        let (pool, early) = (world.pool.clone(), check_out(&world.pool));
        let gives_up = thread::spawn(move || give_up(early, 1));
        let waits = thread::spawn(move || wait(check_out(&pool)));
        drop(held);
        gives_up.join().expect("no panic");
        waits.join().expect("it gets its turn");
        world.judge();
    });
}

/// The connection is opened for a check-out that is cancelled; the next one gets it.
#[test]
fn a_connection_that_comes_too_late_is_the_next_ones() {
    check(None, || {
        let world = World::new();
        let mut early = check_out(&world.pool);
        // It waits, and the connection is under way on the runtime, which does not run yet.
        assert!(look(&mut early).is_none());
        let gives_up = thread::spawn(move || drop(early));
        world.open();
        wait(check_out(&world.pool));
        gives_up.join().expect("no panic");
        world.judge();
    });
}

#[test]
fn close_waits_for_the_last_connection() {
    check(6, || {
        let world = World::new();
        let held = world.connect();
        let other = thread::spawn(move || drop(held));
        close(&world.pool);
        assert_eq!(world.sockets.0.load(Ordering::SeqCst), 0);
        other.join().expect("no panic");
        assert_eq!(world.turns.0.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn close_answers_a_caller_that_waits() {
    check(3, || {
        let world = World::new();
        let held = world.connect();
        let request = check_out(&world.pool);
        let waits = thread::spawn(move || drop(block_on(request)));
        let pool = world.pool.clone();
        let comes_back = thread::spawn(move || drop(held));
        close(&pool);
        assert_eq!(world.sockets.0.load(Ordering::SeqCst), 0);
        waits.join().expect("an answer, good or bad");
        comes_back.join().expect("no panic");
    });
}

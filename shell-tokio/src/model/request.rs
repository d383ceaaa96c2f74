//! A request that waits, its answer, and the one who gives up, on a real [`Pool`].
//!
//! tokio's own parts (the runtime that opens the connection, what is inside of `Notify`) are as they
//! are: each thing that they do is one step to the model checker.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{Maintenance, PoolOptions};
use loom::future::block_on;
use loom::thread;
use tokio::runtime::{self, Runtime};

use super::check;
use crate::{Builder, Connector, HandshakeReporter, Pool, PooledConnection, Target};

/// Connections that exist, and no more of them.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicU32>);

struct Socket(Counted);

impl Connector for Counted {
    type Connection = Socket;

    async fn connect(
        &self,
        _: Target,
        _: HandshakeReporter<Self>,
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

/// Whether a connection is out, according to the events: one at most, in turns.
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
    runtime: Runtime,
    pool: Pool<Counted>,
    sockets: Counted,
    turns: Arc<Turns>,
}

impl World {
    /// A ready pool of one connection, which is not there yet.
    fn new() -> Self {
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        let (sockets, turns) = (Counted::default(), Arc::<Turns>::default());
        let options =
            PoolOptions::default().with_max_pool_size(1).with_maintenance(Maintenance::Never);
        let address = "localhost".parse().expect("an address");
        let seen = Arc::clone(&turns);
        let pool = runtime.block_on(async {
            Builder::new(address, sockets.clone())
                .options(options)
                .on_event(move |event| seen.see(event.event.name()))
                .build()
        });
        let pool = pool.expect("good options");
        pool.ready();
        Self { runtime, pool, sockets, turns }
    }

    /// The connection, checked out.
    fn connect(&self) -> PooledConnection<Counted> {
        let mut request = check_out(&self.pool);
        look(&mut request).unwrap_or_else(|| {
            self.open();
            block_on(request).expect("a connection")
        })
    }

    /// Lets the runtime finish what it has to do. It must not wait for anything: that would stop
    /// all threads of the model.
    fn open(&self) {
        self.runtime.block_on(async {
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Nobody waits, nothing is out, and the connection can be had; then all is closed.
    fn judge(self) {
        let snapshot = self.pool.snapshot();
        assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
        drop(self.connect());
        assert_eq!(self.sockets.0.load(Ordering::SeqCst), 1);
        assert_eq!(self.turns.0.load(Ordering::SeqCst), 0);
        block_on(self.pool.close());
        assert_eq!(self.sockets.0.load(Ordering::SeqCst), 0);
    }
}

type CheckOut = Pin<Box<dyn Future<Output = Result<PooledConnection<Counted>, PoolError>> + Send>>;

/// Asks, but does not wait yet.
fn check_out(pool: &Pool<Counted>) -> CheckOut {
    let pool = pool.clone();
    Box::pin(async move { pool.check_out().await })
}

/// Waits for the answer, which must come.
fn wait(request: CheckOut) {
    drop(block_on(request).expect("a connection"));
}

/// Looks once for the answer.
fn look(request: &mut CheckOut) -> Option<PooledConnection<Counted>> {
    block_on(std::future::poll_fn(|cx| {
        Poll::Ready(match request.as_mut().poll(cx) {
            Poll::Ready(outcome) => Some(outcome.expect("a connection")),
            Poll::Pending => None,
        })
    }))
}

/// Looks for the answer so often, and gives up.
fn give_up(mut request: CheckOut, looks: u32) {
    for _ in 0..looks {
        if look(&mut request).is_some() {
            return;
        }
    }
}

#[test]
fn a_check_in_wakes_the_one_who_waits() {
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
fn a_waker_that_was_replaced_is_not_the_one_that_counts() {
    check(None, || {
        let world = World::new();
        let held = world.connect();
        let request = check_out(&world.pool);
        let other = thread::spawn(move || {
            let mut request = request;
            // Parked by one waker, awaited with another.
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
fn an_answer_that_meets_one_who_gives_up_is_not_lost() {
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
fn who_waits_behind_one_who_gives_up_gets_its_turn() {
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

/// The connection is being opened for one who gives up; the next one gets it.
#[test]
fn a_connection_that_comes_too_late_is_the_next_ones() {
    check(None, || {
        let world = World::new();
        let mut early = check_out(&world.pool);
        // Parked, and the connection under way on the runtime, which nobody drives yet.
        assert!(look(&mut early).is_none());
        let gives_up = thread::spawn(move || drop(early));
        world.open();
        wait(check_out(&world.pool));
        gives_up.join().expect("no panic");
        world.judge();
    });
}

#[test]
fn close_hears_of_the_last_one() {
    check(None, || {
        let world = World::new();
        let held = world.connect();
        let other = thread::spawn(move || drop(held));
        block_on(world.pool.close());
        assert_eq!(world.sockets.0.load(Ordering::SeqCst), 0);
        other.join().expect("no panic");
        assert_eq!(world.turns.0.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn close_answers_the_one_who_waits() {
    check(4, || {
        let world = World::new();
        let held = world.connect();
        let request = check_out(&world.pool);
        let waits = thread::spawn(move || drop(block_on(request)));
        let pool = world.pool.clone();
        let comes_back = thread::spawn(move || drop(held));
        block_on(pool.close());
        assert_eq!(world.sockets.0.load(Ordering::SeqCst), 0);
        waits.join().expect("an answer, good or bad");
        comes_back.join().expect("no panic");
    });
}

//! A blocking pool, played through the scenarios in `spec-tests/scenarios/cmap`:
//!
//! ```text
//! cargo run -p cenote-conform --example toy_pool
//! ```
//!
//! The pool is a toy without sockets, so that the example needs no server. It has check-outs, a limit and
//! a wait queue, but no timeouts, no background work and no errors: the report shows what it lacks.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cenote_conform::{CheckOutRequest, Pool, Recorder, Reply, Runner, Setup, Target};
use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{CheckOutError, CloseReason, Event, PoolOptions, WaiterId};

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/cmap");
    let runner = Runner::new(&Toy).with_limit(Duration::from_secs(2)).with_threads(8);
    let report = runner.run(&folder).expect("the folder has scenarios");
    println!("{report}");
    assert!(report.passed() > 0, "a pool without errors passes the simplest scenarios");
}

/// Opens toy pools.
struct Toy;

impl Target for Toy {
    type Pool = Adapter;

    fn name(&self) -> &'static str {
        "toy"
    }

    fn open(&self, setup: Setup) -> Result<Adapter, String> {
        setup.options.validate().map_err(|error| error.to_string())?;
        let address = Arc::new(setup.address());
        let options = Box::new(setup.options.clone());
        let pool = ToyPool {
            address,
            options: setup.options,
            recorder: setup.recorder,
            state: Mutex::default(),
            changed: Condvar::new(),
            next_id: AtomicU64::new(1),
        };
        pool.emit(&Event::ConnectionPoolCreated { options });
        Ok(Adapter(Arc::new(pool)))
    }
}

/// The adapter: what `cenote-conform` asks, in terms of the pool.
struct Adapter(Arc<ToyPool>);

impl Pool for Adapter {
    type Connection = Connection;
    type Waiter = ();

    fn check_out(&mut self, _: CheckOutRequest, reply: Reply<Connection>) {
        let pool = Arc::clone(&self.0);
        thread::spawn(move || reply.send(pool.wait_for_connection()));
    }

    fn check_in(&mut self, connection: Connection, error: Option<ConnectionError>) {
        self.0.give_back(connection, error.is_some());
    }

    fn ready(&mut self) {
        self.0.change(|state, pool| {
            if !state.is_ready && !state.is_closed {
                state.is_ready = true;
                pool.emit(&Event::ConnectionPoolReady);
            }
        });
    }

    fn clear(&mut self, cause: ConnectionError, interrupt_in_use_connections: bool) {
        self.0.change(|state, pool| {
            if state.is_ready {
                state.is_ready = false;
                state.generation += 1;
                state.cleared_by = Some(cause);
                let service_id = None;
                pool.emit(&Event::ConnectionPoolCleared {
                    service_id,
                    interrupt_in_use_connections,
                });
            }
        });
    }

    fn close(&mut self) {
        self.0.change(|state, pool| {
            if state.is_closed {
                return;
            }
            state.is_closed = true;
            for connection in std::mem::take(&mut state.available) {
                state.total -= 1;
                pool.emit(&connection.closed(CloseReason::PoolClosed));
            }
            pool.emit(&Event::ConnectionPoolClosed);
        });
    }
}

/// The pool.
struct ToyPool {
    address: Arc<ServerAddress>,
    options: PoolOptions,
    recorder: Recorder,
    state: Mutex<State>,
    changed: Condvar,
    next_id: AtomicU64,
}

#[derive(Default)]
struct State {
    is_ready: bool,
    is_closed: bool,
    generation: u64,
    cleared_by: Option<ConnectionError>,
    total: u32,
    available: Vec<Connection>,
}

struct Connection {
    connection_id: u64,
    generation: u64,
}

impl Connection {
    const fn closed(&self, reason: CloseReason) -> Event<ConnectionError> {
        Event::ConnectionClosed { connection_id: self.connection_id, reason, error: None }
    }
}

impl ToyPool {
    fn wait_for_connection(&self) -> Result<Connection, PoolError> {
        let begun = Instant::now();
        let mut state = self.lock();
        self.emit(&Event::ConnectionCheckOutStarted { request: WaiterId(0) });
        loop {
            let error = if state.is_closed {
                CheckOutError::PoolClosed
            } else if !state.is_ready {
                CheckOutError::PoolCleared { cause: state.cleared_by.clone() }
            } else if let Some(connection) = self.take(&mut state) {
                let connection_id = connection.connection_id;
                let (request, duration) = (WaiterId(0), begun.elapsed().into());
                self.emit(&Event::ConnectionCheckedOut { connection_id, request, duration });
                return Ok(connection);
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let duration = begun.elapsed();
            self.emit(&Event::ConnectionCheckOutFailed {
                request: WaiterId(0),
                error: error.clone(),
                duration: duration.into(),
            });
            return Err(PoolError::new(Arc::clone(&self.address), error));
        }
    }

    fn take(&self, state: &mut State) -> Option<Connection> {
        while let Some(connection) = state.available.pop() {
            if connection.generation == state.generation {
                return Some(connection);
            }
            state.total -= 1;
            self.emit(&connection.closed(CloseReason::Stale));
        }
        if state.total >= self.options.max_pool_size.unwrap_or(100) {
            return None;
        }
        state.total += 1;
        let connection_id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.emit(&Event::ConnectionCreated { connection_id });
        self.emit(&Event::ConnectionReady { connection_id, duration: Duration::ZERO });
        Some(Connection { connection_id, generation: state.generation })
    }

    fn give_back(&self, connection: Connection, is_broken: bool) {
        self.change(|state, pool| {
            let connection_id = connection.connection_id;
            pool.emit(&Event::ConnectionCheckedIn { connection_id });
            let reason = if state.is_closed {
                CloseReason::PoolClosed
            } else if is_broken {
                CloseReason::Error
            } else if connection.generation != state.generation {
                CloseReason::Stale
            } else {
                state.available.push(connection);
                return;
            };
            state.total -= 1;
            pool.emit(&connection.closed(reason));
        });
    }

    fn change(&self, change: impl FnOnce(&mut State, &Self)) {
        change(&mut self.lock(), self);
        self.changed.notify_all();
    }

    fn emit(&self, event: &Event<ConnectionError>) {
        self.recorder.record(event, &self.address);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

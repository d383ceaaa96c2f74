//! Threads instead of tasks: the mio shell beside r2d2 and a pool made by hand.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use cenote_core::error::ConnectionError;
use cenote_core::pool::PoolOptions;
use cenote_mio::{Builder, Connector, EventLoop, HandshakeReporter, Pool, Target};

use crate::measure::{Contestant, Sample, nanoseconds};
use crate::pools::{Numbers, plain, r2d2, timed};

const PAIRS: u32 = 20_000;

const THREADS: u32 = 64;
const PAIRS_EACH: u32 = 100;

impl Connector<EventLoop> for Numbers {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(&self, target: Target, _: HandshakeReporter) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

/// One thread, a pool of ten.
pub(crate) fn alone() -> Vec<Contestant> {
    let list = Mutex::new((0..10_u64).collect::<Vec<_>>());
    let bare = move || {
        let taken = list.lock().expect("no panic").pop();
        list.lock().expect("no panic").extend(black_box(taken));
    };
    let made = HandMade::new(10);
    let r2d2 = r2d2(10);
    let cenote = |options, counts| {
        let pool = cenote(options, counts);
        move || drop(black_box(pool.check_out()))
    };
    vec![
        ("bare: Mutex<Vec> pop and push", pairs(bare)),
        ("mutex and condvar, by hand", pairs(move || made.with(|| ()))),
        ("cenote", pairs(cenote(plain(10), false))),
        ("cenote, timed", pairs(cenote(timed(10), false))),
        ("cenote, timed, a subscriber", pairs(cenote(timed(10), true))),
        ("r2d2", pairs(move || drop(black_box(r2d2.get())))),
    ]
}

/// 64 threads share 8 connections; each yields while it has one.
pub(crate) fn contended() -> Vec<Contestant> {
    let (made, in_order) = (HandMade::new(8), InOrder::new(8));
    let r2d2 = r2d2(8);
    let cenote = |options, counts| {
        let pool = cenote(options, counts);
        move || {
            let connection = pool.check_out();
            thread::yield_now();
            drop(connection);
        }
    };
    let bare = || {
        thread::yield_now();
        thread::yield_now();
    };
    vec![
        ("bare: two yields", crowd(bare)),
        ("mutex and condvar, by hand", crowd(move || made.with(thread::yield_now))),
        ("by hand, in order", crowd(move || in_order.with(thread::yield_now))),
        ("cenote", crowd(cenote(plain(8), false))),
        ("cenote, timed, a subscriber", crowd(cenote(timed(8), true))),
        (
            "r2d2",
            crowd(move || {
                let connection = r2d2.get();
                thread::yield_now();
                drop(connection);
            }),
        ),
    ]
}

/// The time for one pair of many.
fn pairs(pair: impl Fn() + 'static) -> Box<dyn FnMut() -> Sample> {
    Box::new(move || {
        let began = Instant::now();
        for _ in 0..PAIRS {
            pair();
        }
        vec![nanoseconds(began.elapsed() / PAIRS)]
    })
}

fn crowd(pair: impl Fn() + Sync + 'static) -> Box<dyn FnMut() -> Sample> {
    Box::new(move || {
        let began = Instant::now();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..PAIRS_EACH {
                        pair();
                    }
                });
            }
        });
        vec![nanoseconds(began.elapsed() / (THREADS * PAIRS_EACH))]
    })
}

/// A list, and a condition variable for threads that find it empty. Not fair.
struct HandMade {
    state: Mutex<Idle>,
    bell: Condvar,
}

struct Idle {
    connections: Vec<u64>,
    /// Notifying is a system call, whether or not a thread waits.
    waiting: usize,
}

impl HandMade {
    fn new(connections: u64) -> Self {
        let idle = Idle { connections: (0..connections).collect(), waiting: 0 };
        Self { state: Mutex::new(idle), bell: Condvar::new() }
    }

    fn with<R>(&self, use_it: impl FnOnce() -> R) -> R {
        let mut idle = self.state.lock().expect("no panic");
        let taken = loop {
            if let Some(taken) = idle.connections.pop() {
                break taken;
            }
            idle.waiting += 1;
            idle = self.bell.wait(idle).expect("no panic");
            idle.waiting -= 1;
        };
        drop(idle);
        let result = use_it();
        let mut idle = self.state.lock().expect("no panic");
        idle.connections.push(black_box(taken));
        let is_waited_for = idle.waiting > 0;
        drop(idle);
        if is_waited_for {
            self.bell.notify_one();
        }
        result
    }
}

/// The same, fair: a returned connection goes to the thread that has waited longest.
struct InOrder {
    state: Mutex<(Vec<u64>, VecDeque<Arc<Place>>)>,
}

#[derive(Default)]
struct Place {
    given: Mutex<Option<u64>>,
    bell: Condvar,
}

impl InOrder {
    fn new(connections: u64) -> Self {
        Self { state: Mutex::new(((0..connections).collect(), VecDeque::new())) }
    }

    fn with<R>(&self, use_it: impl FnOnce() -> R) -> R {
        let taken = self.take();
        let result = use_it();
        let mut state = self.state.lock().expect("no panic");
        let Some(next) = state.1.pop_front() else {
            state.0.push(black_box(taken));
            return result;
        };
        drop(state);
        *next.given.lock().expect("no panic") = Some(black_box(taken));
        next.bell.notify_one();
        result
    }

    fn take(&self) -> u64 {
        let mut state = self.state.lock().expect("no panic");
        if let Some(taken) = state.0.pop() {
            return taken;
        }
        let place = Arc::<Place>::default();
        state.1.push_back(Arc::clone(&place));
        drop(state);
        let given = place.given.lock().expect("no panic");
        let given = place.bell.wait_while(given, |given| given.is_none()).expect("no panic");
        given.expect("it was waited for")
    }
}

/// Every connection exists and is idle.
fn cenote(options: PoolOptions, counts_events: bool) -> Pool<Numbers> {
    let address = "localhost".parse().expect("an address");
    let connections = options.max_pool_size.expect("it is set");
    let mut builder = Builder::new(address, Numbers).replace_options(options);
    if counts_events {
        let count = std::sync::atomic::AtomicU64::new(0);
        builder = builder.on_event(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
    }
    let pool = builder.build().expect("good options");
    pool.ready();
    assert_eq!(pool.warm_up(connections).expect("they connect"), connections);
    pool
}

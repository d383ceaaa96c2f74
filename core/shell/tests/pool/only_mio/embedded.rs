//! A pool in the test's own event loop.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::pool::{PoolOptions, Status};
use cenote_mio::{EventLoop, PoolSource, RequestId};
use mio::{Events, Poll, Token, Waker};

use crate::pool::world::{Gate, at_most, builder, failure, until};

const WAKER: Token = Token(7);
const TOKENS: Range<usize> = 100..200;

struct World {
    poll: Poll,
    source: PoolSource<Gate>,
    woken: Arc<AtomicU32>,
}

impl World {
    fn new(gate: &Gate, options: PoolOptions) -> Self {
        let poll = Poll::new().expect("a poll");
        let waker = Waker::new(poll.registry(), WAKER).expect("a waker");
        let woken = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&woken);
        let wake = move || {
            count.fetch_add(1, Ordering::Relaxed);
            waker.wake().expect("it wakes");
        };
        let builder = builder::<EventLoop>(gate, options);
        let source = PoolSource::new(builder, poll.registry(), TOKENS, wake).expect("good options");
        source.pool().ready();
        Self { poll, source, woken }
    }

    /// One round of the loop, which waits if there is nothing to do, and must end by itself.
    fn round(&mut self) {
        let mut events = Events::with_capacity(8);
        let limit = Duration::from_secs(60);
        let timeout = self.source.next_timeout().unwrap_or(limit).min(limit);
        self.poll.poll(&mut events, Some(timeout)).expect("events");
        for event in &events {
            assert!(!self.source.handle_event(event), "there are no sockets");
        }
        self.source.turn();
    }

    /// Until something is ready: which request, and the number of its connection or the error.
    fn next(&mut self) -> (RequestId, Result<u64, &'static str>) {
        loop {
            if let Some((request, outcome)) = self.source.next_ready() {
                let outcome = outcome.map(|connection| connection.number);
                return (request, outcome.map_err(|error| error.name()));
            }
            self.round();
        }
    }
}

#[test]
fn requests_become_ready_while_the_loop_turns() {
    let gate = Gate::closed();
    let mut world = World::new(&gate, at_most(1));
    let request = world.source.check_out();
    assert!(world.source.next_ready().is_none());
    // The gate opens while the loop waits for events.
    let opens = gate.clone();
    let opening = thread::spawn(move || opens.admit(1));
    assert_eq!(world.next(), (request, Ok(1)));
    opening.join().unwrap();
    // An available connection is ready at once.
    let request = world.source.check_out();
    assert_eq!(world.source.next_timeout(), Some(Duration::ZERO));
    assert_eq!(world.next(), (request, Ok(1)));
    assert!(world.source.next_ready().is_none());
}

#[test]
fn timeouts_fire_in_the_loop() {
    let gate = Gate::open();
    let mut world = World::new(&gate, at_most(1).with_max_idle_time(Duration::from_millis(20)));
    let first = world.source.check_out();
    let held = loop {
        match world.source.next_ready() {
            Some((request, outcome)) if request == first => break outcome.unwrap(),
            other => assert!(other.is_none()),
        }
        world.round();
    };
    let deadline = Instant::now() + Duration::from_millis(30);
    let [late, patient] = [
        world.source.check_out_before(deadline),
        world.source.check_out_before(deadline + Duration::from_secs(600)),
    ];
    assert_eq!(world.next(), (late, Err("WaitQueueTimeoutError")));
    assert!(Instant::now() >= deadline);
    drop(held);
    assert_eq!(world.next(), (patient, Ok(1)));
    while !gate.alive().is_empty() {
        world.round(); // It idles out.
    }
}

#[test]
fn a_cancelled_request_leaves_its_connection_to_the_next() {
    let gate = Gate::open();
    let mut world = World::new(&gate, at_most(1));
    let requests = [(); 4].map(|()| world.source.check_out());
    world.source.cancel(requests[1]); // Waits.
    while world.source.pool().snapshot().in_use == 0 {
        world.round();
    }
    world.source.cancel(requests[0]); // Has an answer.
    world.source.cancel(requests[0]);
    assert_eq!(world.next(), (requests[2], Ok(1)));
    assert_eq!(world.next(), (requests[3], Ok(1)));
    let at_once = world.source.check_out();
    world.source.cancel(at_once);
    assert!(world.source.next_ready().is_none());
    assert_eq!(world.source.pool().snapshot().available, 1);
}

/// Other threads block as usual, and the loop is woken for them.
#[test]
fn other_threads_may_use_the_pool() {
    let gate = Gate::open();
    let mut world = World::new(&gate, at_most(1));
    let pool = world.source.pool().clone();
    // The loop has nothing to do, and has to be woken.
    while world.source.next_timeout().is_some() {
        world.round_if_any();
    }
    let before = world.woken.load(Ordering::Relaxed);
    let thread = thread::spawn(move || pool.check_out().unwrap().number);
    until(|| world.woken.load(Ordering::Relaxed) > before);
    while !thread.is_finished() {
        world.round_if_any();
    }
    assert_eq!(thread.join().unwrap(), 1);
}

impl World {
    fn round_if_any(&mut self) {
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, Some(Duration::from_millis(1))).expect("events");
        self.source.turn();
    }
}

#[test]
fn a_dropped_source_closes_the_pool() {
    let gate = Gate::closed();
    gate.admit(1);
    let mut world = World::new(&gate, at_most(3));
    let pool = world.source.pool().clone();
    let _requests = [(); 5].map(|()| world.source.check_out());
    while pool.snapshot().in_use == 0 {
        world.round();
    }
    drop(world);
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.total, snapshot.status), (0, Status::Closed), "{snapshot}");
    assert_eq!(gate.alive(), [0; 0]);
    assert_eq!(pool.check_out().unwrap_err().name(), "PoolClosedError");
    pool.close();
}

// KX-02
#[test]
fn close_does_not_wait() {
    let gate = Gate::open();
    let mut world = World::new(&gate, at_most(2));
    world.source.check_out();
    let held = loop {
        if let Some((_, outcome)) = world.source.next_ready() {
            break outcome.unwrap();
        }
        world.round();
    };
    world.source.pool().clear(failure(), false);
    world.source.close();
    assert_eq!(world.source.pool().snapshot().status, Status::Closed);
    assert_eq!(gate.alive(), [1]);
    drop(held);
    assert_eq!(gate.alive(), [0; 0]);
}

/// It has an answer then, which is discarded.
#[test]
fn a_request_may_be_cancelled_after_its_deadline() {
    let gate = Gate::closed();
    let mut world = World::new(&gate, at_most(1));
    let deadline = Instant::now() + Duration::from_millis(1);
    let late = world.source.check_out_before(deadline);
    while Instant::now() <= deadline {
        thread::yield_now();
    }
    world.source.cancel(late);
    assert!(world.source.next_ready().is_none());
    // The next request is served.
    let next = world.source.check_out();
    gate.admit(1);
    let (request, outcome) = world.next();
    assert_eq!(request, next);
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(world.source.next_ready().is_none());
}

//! Fronts, which `docs/decisions/0013-no-fronts.md` leaves out: a place for each core in which a returned
//! connection lies ready for the next check-out there, without the pool's lock. The model has the words
//! of the fronts and, behind a lock, as much of the pool as they concern.

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::check;

/// Nothing lies in the front; anything else is the number of a connection.
const EMPTY: usize = 0;
/// The front takes and gives nothing, and everything goes to the pool.
const SHUT: usize = usize::MAX;

struct Pool {
    fronts: Vec<AtomicUsize>,
    state: Mutex<State>,
    delivered: Condvar,
    /// Whether each connection is held by a caller.
    is_held: Vec<AtomicBool>,
}

#[derive(Default)]
struct State {
    idle: Vec<usize>,
    /// The requests that wait, oldest first, and what they got.
    queue: VecDeque<u32>,
    answers: Vec<(u32, Option<usize>)>,
    requests: u32,
    is_open: bool,
    is_closed: bool,
    closed: usize,
}

impl Pool {
    fn new(fronts: usize, connections: usize) -> Self {
        Self {
            fronts: (0..fronts).map(|_| AtomicUsize::new(SHUT)).collect(),
            state: Mutex::new(State { idle: (1..=connections).collect(), ..State::default() }),
            delivered: Condvar::new(),
            is_held: (0..=connections).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// A check-out on a core; `None` if the pool is closed.
    fn take(&self, front: usize) -> Option<usize> {
        let taken = self.take_from_front(front).or_else(|| self.take_from_pool());
        if let Some(connection) = taken {
            let was_held = self.is_held[connection].swap(true, Ordering::Relaxed);
            assert!(!was_held, "connection {connection} has two holders");
        }
        taken
    }

    fn take_from_front(&self, front: usize) -> Option<usize> {
        let front = &self.fronts[front];
        let seen = front.load(Ordering::Relaxed);
        let has_any = seen != EMPTY && seen != SHUT;
        let taken = has_any
            && front.compare_exchange(seen, EMPTY, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then_some(seen)
    }

    fn take_from_pool(&self) -> Option<usize> {
        let mut state = self.state.lock().expect("no panic");
        self.shut(&mut state);
        if state.is_closed {
            return None;
        }
        if let Some(connection) = state.idle.pop() {
            self.settle(&mut state);
            return Some(connection);
        }
        state.requests += 1;
        let request = state.requests;
        state.queue.push_back(request);
        self.settle(&mut state);
        loop {
            if let Some(place) = state.answers.iter().position(|answer| answer.0 == request) {
                return state.answers.swap_remove(place).1;
            }
            state = self.delivered.wait(state).expect("no panic");
        }
    }

    /// A check-in on a core.
    fn put(&self, front: usize, connection: usize) {
        self.is_held[connection].store(false, Ordering::Relaxed);
        let front = &self.fronts[front];
        if front.compare_exchange(EMPTY, connection, Ordering::Release, Ordering::Relaxed).is_ok() {
            return;
        }
        let mut state = self.state.lock().expect("no panic");
        self.shut(&mut state);
        state.check_in(connection);
        self.settle(&mut state);
    }

    fn close(&self) {
        let mut state = self.state.lock().expect("no panic");
        self.shut(&mut state);
        state.is_closed = true;
        state.closed += state.idle.len();
        state.idle.clear();
        let queue = std::mem::take(&mut state.queue);
        state.answers.extend(queue.into_iter().map(|request| (request, None)));
        self.settle(&mut state);
    }

    /// Before any input: what lies in the fronts is checked in, so that the pool decides on all there is.
    fn shut(&self, state: &mut State) {
        if !std::mem::replace(&mut state.is_open, false) {
            return;
        }
        for front in &self.fronts {
            let lay_there = front.swap(SHUT, Ordering::Acquire);
            assert_ne!(lay_there, SHUT, "only the pool shuts it, under its lock");
            if lay_there != EMPTY {
                state.check_in(lay_there);
            }
        }
    }

    /// After any input: the fronts open unless a request waits or the pool is closed.
    fn settle(&self, state: &mut State) {
        if state.queue.is_empty() && !state.is_closed {
            state.is_open = true;
            for front in &self.fronts {
                front.store(EMPTY, Ordering::Release);
            }
        } else {
            // What FIFO rests on: no younger request finds a connection while this one waits.
            assert!(state.queue.is_empty() || state.idle.is_empty(), "a request waits for nothing");
            let all_are_shut = self.fronts.iter().all(|it| it.load(Ordering::Relaxed) == SHUT);
            assert!(all_are_shut, "a request waits beside an open front");
        }
        self.delivered.notify_all();
    }
}

impl State {
    fn check_in(&mut self, connection: usize) {
        if self.is_closed {
            self.closed += 1;
        } else if let Some(oldest) = self.queue.pop_front() {
            self.answers.push((oldest, Some(connection)));
        } else {
            self.idle.push(connection);
        }
    }
}

/// Each caller on a core of its own.
fn callers(pool: &Arc<Pool>, turns: &[usize]) -> Vec<thread::JoinHandle<()>> {
    let caller = |(front, &turns): (usize, &usize)| {
        let pool = Arc::clone(pool);
        thread::spawn(move || {
            for _ in 0..turns {
                let Some(connection) = pool.take(front) else { return };
                pool.put(front, connection);
            }
        })
    };
    turns.iter().enumerate().map(caller).collect()
}

#[test]
fn fronts_give_a_connection_to_one_caller_and_every_request_is_answered() {
    check(3, || {
        let pool = Arc::new(Pool::new(2, 1));
        callers(&pool, &[2, 2]).into_iter().for_each(|it| it.join().expect("no panic"));
        let mut state = pool.state.lock().expect("no panic");
        pool.shut(&mut state);
        assert_eq!((state.idle.as_slice(), state.queue.len()), ([1].as_slice(), 0));
    });
}

#[test]
fn fronts_of_callers_on_one_core_are_shared() {
    check(3, || {
        let pool = Arc::new(Pool::new(1, 2));
        let other = Arc::clone(&pool);
        let caller = thread::spawn(move || {
            let connection = other.take(0).expect("open");
            other.put(0, connection);
        });
        for _ in 0..2 {
            let connection = pool.take(0).expect("open");
            pool.put(0, connection);
        }
        caller.join().expect("no panic");
        let mut state = pool.state.lock().expect("no panic");
        pool.shut(&mut state);
        state.idle.sort_unstable();
        assert_eq!(state.idle, [1, 2]);
    });
}

#[test]
fn a_close_finds_what_lies_in_fronts() {
    check(3, || {
        let pool = Arc::new(Pool::new(2, 2));
        let callers = callers(&pool, &[2, 1]);
        pool.close();
        callers.into_iter().for_each(|it| it.join().expect("no panic"));
        let state = pool.state.lock().expect("no panic");
        let left = pool.fronts.iter().filter(|it| it.load(Ordering::Relaxed) != SHUT).count();
        assert_eq!((state.closed, state.idle.len(), left), (2, 0, 0));
    });
}

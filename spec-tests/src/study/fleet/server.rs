//! The server: a queue, and workers that take from it in turn.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use cenote_core::pool::Instant;

/// What the server is like.
#[derive(Clone, Copy, Debug)]
pub(in crate::study) struct Service {
    /// How much it does at a time.
    pub(in crate::study) workers: usize,
    /// What opening a connection takes of a worker: TLS, hello, SCRAM.
    pub(in crate::study) opening: Duration,
    /// What an operation takes of a worker.
    pub(in crate::study) operation: Duration,
    /// How many connections may wait for a worker to open them; it resets those beyond.
    pub(in crate::study) backlog: usize,
    /// Between client and server and back.
    pub(in crate::study) round_trip: Duration,
    /// One opening in so many is slow for reasons of the network, by so much; 0 is never.
    pub(in crate::study) slow_opening: (u64, Duration),
}

pub(super) struct Server {
    pub(super) service: Service,
    pub(super) is_up: bool,
    /// When it went away last.
    pub(super) went_down: Option<Instant>,
    /// When each worker has nothing to do any more.
    free: BinaryHeap<Reverse<Instant>>,
    /// When each connection that waits for a worker gets one.
    waiting: VecDeque<Instant>,
}

/// What becomes of a request to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It is done then.
    Done(Instant),
    /// It is refused at once.
    Refused,
}

impl Server {
    pub(super) fn new(service: Service) -> Self {
        Self {
            service,
            is_up: true,
            went_down: None,
            free: std::iter::repeat_n(Reverse(Instant::ORIGIN), service.workers).collect(),
            waiting: VecDeque::new(),
        }
    }

    /// Nothing of what it was doing goes on.
    pub(super) fn go_down(&mut self, now: Instant) {
        self.is_up = false;
        self.went_down = Some(now);
        self.free = std::iter::repeat_n(Reverse(now), self.service.workers).collect();
        self.waiting.clear();
    }

    /// Somebody opens a connection.
    pub(super) fn open(&mut self, now: Instant) -> Reply {
        self.accept(now, self.service.opening)
    }

    /// A monitor opens a connection, which is not logged in: a quarter of the work.
    pub(super) fn check(&mut self, now: Instant) -> Reply {
        self.accept(now, self.service.opening / 4)
    }

    fn accept(&mut self, now: Instant, takes: Duration) -> Reply {
        while self.waiting.front().is_some_and(|&begins| begins <= now) {
            self.waiting.pop_front();
        }
        if !self.is_up || self.waiting.len() >= self.service.backlog {
            return Reply::Refused;
        }
        let (begins, done) = self.work(now, takes);
        if begins > now {
            self.waiting.push_back(begins);
        }
        Reply::Done(done)
    }

    /// Somebody wants an operation done.
    pub(super) fn operate(&mut self, now: Instant) -> Reply {
        if !self.is_up {
            return Reply::Refused;
        }
        Reply::Done(self.work(now, self.service.operation).1)
    }

    /// The first worker that is free does it, whoever else waits for that has come before.
    fn work(&mut self, now: Instant, takes: Duration) -> (Instant, Instant) {
        let Reverse(free) = self.free.pop().unwrap_or(Reverse(now));
        let begins = free.max(now);
        let done = begins + takes;
        self.free.push(Reverse(done));
        (begins, done)
    }
}

//! The server: a queue, and workers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use cenote_core::pool::Instant;

/// The parameters of the server.
#[derive(Clone, Copy, Debug)]
pub(in crate::study) struct Service {
    /// The number of workers.
    pub(in crate::study) workers: usize,
    /// The work of accepting a connection: TLS, hello, SCRAM.
    pub(in crate::study) opening: Duration,
    /// The work of an operation.
    pub(in crate::study) operation: Duration,
    /// The maximum number of connections that wait to be accepted; it resets further ones.
    pub(in crate::study) backlog: usize,
    /// The round-trip time.
    pub(in crate::study) round_trip: Duration,
    /// 1 in this many establishments takes this much longer because of the network; 0 is never.
    pub(in crate::study) slow_opening: (u64, Duration),
    /// Whether operations take that time on average, with an exponential distribution.
    pub(in crate::study) varies: bool,
}

pub(super) struct Server {
    pub(super) service: Service,
    pub(super) is_up: bool,
    /// The time at which it last became unavailable.
    pub(super) went_down: Option<Instant>,
    /// The time at which each worker is free.
    free: BinaryHeap<Reverse<Instant>>,
    /// The time at which a worker takes each waiting connection.
    waiting: VecDeque<Instant>,
}

/// The reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It is done at this time.
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

    /// Drops all work in progress.
    pub(super) fn go_down(&mut self, now: Instant) {
        self.is_up = false;
        self.went_down = Some(now);
        self.free = std::iter::repeat_n(Reverse(now), self.service.workers).collect();
        self.waiting.clear();
    }

    /// A client opens a connection.
    pub(super) fn open(&mut self, now: Instant) -> Reply {
        self.accept(now, self.service.opening)
    }

    /// A monitor opens a connection, without a login: a quarter of the work.
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

    /// A client sends an operation.
    pub(super) fn operate(&mut self, now: Instant, takes: Duration) -> Reply {
        if !self.is_up {
            return Reply::Refused;
        }
        Reply::Done(self.work(now, takes).1)
    }

    /// The first free worker does it, after everything that came before.
    fn work(&mut self, now: Instant, takes: Duration) -> (Instant, Instant) {
        let Reverse(free) = self.free.pop().unwrap_or(Reverse(now));
        let begins = free.max(now);
        let done = begins + takes;
        self.free.push(Reverse(done));
        (begins, done)
    }
}

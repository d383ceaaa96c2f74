//! A pool in an application's own loop has no thread, as the operating system counts them.

use std::fs;

use cenote_check::EventGuard;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_mio::{Pool, PoolSource};
use cenote_test_runtimes::alone;
use mio::{Events, Poll, Token, Waker};

const WAKER: Token = Token(0);

/// Threads that pools of this shell have elsewhere.
fn threads_of_pools() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux says it").flatten();
    // One may end meanwhile.
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let is_ours =
        |name: &String| ["cenote-loop", "cenote-helper", "cenote-trace"].contains(&name.trim());
    names.filter(is_ours).collect()
}

/// Not even for TLS, for a login, for a limit of time, or at its end.
#[test]
fn an_embedded_pool_has_no_thread() {
    alone(|| {
        let settings =
            Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
        let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).expect("it starts");
        let mut poll = Poll::new().expect("a poll");
        let waker = Waker::new(poll.registry(), WAKER).expect("a waker");
        let wake = move || waker.wake().expect("it wakes");
        let sentry = EventGuard::new();
        let builder = Pool::builder(&endpoint.uri()).expect("a connection string");
        let builder = builder.on_event(move |told| sentry.hear(&told.event, &told.address));
        let mut source = PoolSource::new(builder, poll.registry(), 1..100, wake).expect("a pool");
        source.pool().ready();
        for _ in 0..8 {
            source.check_out();
        }
        let mut held = Vec::new();
        let mut events = Events::with_capacity(16);
        while held.len() < 8 {
            poll.poll(&mut events, source.next_timeout()).expect("events");
            for event in &events {
                assert!(source.handle_event(event) || event.token() == WAKER);
            }
            source.turn();
            while let Some((_, outcome)) = source.next_ready() {
                held.push(outcome.expect("a connection"));
            }
            assert_eq!(threads_of_pools(), [""; 0]);
        }
        let pool = source.pool().clone();
        assert_eq!(pool.snapshot().in_use, 8);
        drop((held, source));
        assert_eq!((pool.snapshot().total, threads_of_pools()), (0, Vec::new()));
    });
}

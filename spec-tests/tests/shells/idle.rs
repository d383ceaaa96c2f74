//! Connections whose peer ends, or speaks, while they are idle.

use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::ConnectionError;
use cenote_core::pool::{CloseReason, Event};
use cenote_endpoint::{Ending, Endpoint, Settings};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{Events, closed, ping, plain, pool, tls, with};

/// After this time what was sent has come.
const ARRIVAL: Duration = Duration::from_millis(500);

on_all_runtimes!(
    a_connection_that_the_peer_ended_is_not_handed_out,
    a_peer_that_speaks_out_of_turn_loses_the_connection,
    a_healthy_connection_stays,
    the_minimum_is_restored_without_a_check_out,
);

/// Breaks all connections, and waits until that has reached this side.
fn break_off(endpoint: &Endpoint, ending: Ending) {
    endpoint.with(|server, now| server.break_connections(now, ending, None));
    thread::sleep(ARRIVAL);
}

/// The causes with which connections were closed.
fn causes(events: &Events) -> Vec<(CloseReason, Option<ConnectionError>)> {
    let events = events.lock().expect("no panic");
    let closed = events.iter().filter_map(|event| {
        let Event::ConnectionClosed { reason, error, .. } = event else { return None };
        Some((*reason, error.clone()))
    });
    closed.collect()
}

fn is_cleared(events: &Events) -> bool {
    let events = events.lock().expect("no panic");
    events.iter().any(|event| matches!(event, Event::ConnectionPoolCleared { .. }))
}

// BG-01
fn a_connection_that_the_peer_ended_is_not_handed_out(shell: Shell) {
    for endpoint in [plain(), tls(Settings::default())] {
        for ending in [Ending::Close, Ending::Fin, Ending::Reset] {
            let (pool, events) = pool(shell, &endpoint.uri());
            assert!(ping(&pool));
            break_off(&endpoint, ending);
            assert!(ping(&pool), "{ending:?}");
            assert_eq!(pool.snapshot().connections_created, 2, "{ending:?}");
            let causes = causes(&events);
            let [(CloseReason::Error, Some(cause))] = &causes[..] else { panic!("{causes:?}") };
            assert!(cause.is_network_error(), "{ending:?}: {cause}");
        }
    }
}

fn a_peer_that_speaks_out_of_turn_loses_the_connection(shell: Shell) {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(shell, &endpoint.uri());
        assert!(ping(&pool));
        endpoint.with(|server, now| server.send_unasked(now, b"again"));
        thread::sleep(ARRIVAL);
        assert!(ping(&pool));
        assert_eq!(pool.snapshot().connections_created, 2);
        let causes = causes(&events);
        let [(CloseReason::Error, Some(cause))] = &causes[..] else { panic!("{causes:?}") };
        assert!(cause.to_string().contains("bytes that nothing asked for"), "{cause}");
    }
}

/// A look reads a byte, so a second look at the same connection would find nothing wrong. In pools without subscribers,
/// because those decide otherwise.
#[test]
fn a_look_is_not_repeated_without_subscribers() {
    let endpoint = plain();
    let speak = || {
        endpoint.with(|server, now| server.send_unasked(now, b"!"));
        thread::sleep(ARRIVAL);
    };
    let pool = cenote_mio::Pool::connect_to(&endpoint.uri()).expect("good options");
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    speak();
    assert_eq!(pool.check_out().expect("a connection").id(), 2);
    pool.close();

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let pool = cenote_tokio::Pool::connect_to(&endpoint.uri()).expect("good options");
        pool.ready();
        drop(pool.check_out().await.expect("a connection"));
        speak();
        assert_eq!(pool.check_out().await.expect("a connection").id(), 2);
        pool.close().await;
    });
}

fn a_healthy_connection_stays(shell: Shell) {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(shell, &endpoint.uri());
        for _ in 0..20 {
            assert!(ping(&pool));
        }
        // Longer than the time between two looks at all idle connections.
        thread::sleep(Duration::from_millis(700));
        assert!(ping(&pool));
        assert_eq!(pool.snapshot().connections_created, 1);
        assert!(causes(&events).is_empty());
    }
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < Duration::from_secs(30), "no {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

// PO-01, PO-05, BG-01, BG-02, ND-05
// Reports pgx#1780: a pool that has its minimum goes on opening connections.
fn the_minimum_is_restored_without_a_check_out(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &with(&endpoint.uri(), "minPoolSize=3"));
    wait_for("minimum", || pool.snapshot().available == 3);
    endpoint.with(|server, now| server.break_connections(now, Ending::Close, None));
    wait_for("new connections", || {
        let counts = pool.snapshot();
        (counts.available, counts.connections_created) == (3, 6)
    });
    assert_eq!(closed(&events, 3), ["error"; 3]);
    assert!(!is_cleared(&events));
    thread::sleep(Duration::from_millis(300));
    assert_eq!(pool.snapshot().connections_created, 6, "it has its minimum");
}

//! Commands on connections that are checked out, and what becomes of these connections.

use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote::endpoint::{Ending, Endpoint, Fault, Settings};
use cenote_core::error::{ConnectionError, Kind, Stage};
use cenote_mio::OperationError;

use crate::world::{at, closed, ping, plain, pool, set, tls, with};

pub(crate) fn block_ping(endpoint: &Endpoint, milliseconds: i32) {
    let block: RawDocumentBuf = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": {
            "failCommands": ["ping"],
            "blockConnection": true,
            "blockTimeMS": milliseconds,
        },
    };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
}

/// Until the endpoint has seen so many pings.
pub(crate) fn seen(endpoint: &Endpoint, pings: u64) {
    while endpoint.with(|server, _| server.statistics()).commands.get("ping") != Some(&pings) {
        thread::yield_now();
    }
}

#[test]
fn a_command_that_runs_out_of_time_costs_its_connection() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    block_ping(&endpoint, 60_000);
    let mut connection = pool.check_out().unwrap();
    let began = Instant::now();
    let after = Duration::from_millis(50);
    let ping_command = rawdoc! { "ping": 1 };
    let error = connection.command_before("admin", &ping_command, began + after).unwrap_err();
    assert!(began.elapsed() >= after);
    let OperationError::Connection(error) = error else { panic!("{error}") };
    assert!(error.is_timeout(), "{error}");
    drop(connection);
    assert_eq!(closed(&events, 1), ["error"], "its reply was never read");
    assert!(ping(&pool));
    assert_eq!(pool.snapshot().connections_created, 2);
}

/// A deadline is for the whole command, however often something comes.
#[test]
fn a_reply_that_drips_runs_out_of_time_too() {
    let endpoint = plain();
    let (pool, _) = pool(&with(&endpoint.uri(), "socketTimeoutMS=60000"));
    let mut connection = pool.check_out().unwrap();
    set(&endpoint, at(Fault::Drip { bytes: 1, every: Duration::from_millis(20) }, "ping"));
    let deadline = Instant::now() + Duration::from_millis(100);
    let error = connection.command_before("admin", &rawdoc! { "ping": 1 }, deadline).unwrap_err();
    let OperationError::Connection(error) = error else { panic!("{error}") };
    assert!(error.is_timeout() && Instant::now() >= deadline, "{error}");
}

#[test]
fn an_interrupt_ends_a_command_at_once() {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(&endpoint.uri());
        block_ping(&endpoint, 60_000);
        let running = thread::spawn({
            let pool = pool.clone();
            move || {
                let mut connection = pool.check_out().unwrap();
                let error = connection.command("admin", &rawdoc! { "ping": 1 }).unwrap_err();
                assert!(connection.is_interrupted());
                error
            }
        });
        seen(&endpoint, 1);
        pool.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(10)), true);
        let error = running.join().unwrap();
        assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
        assert!(error.is_retryable());
        assert_eq!(closed(&events, 1), ["error"], "before stale (KX-05, SI-12)");
        pool.ready();
        assert!(ping(&pool));
    }
}

#[test]
fn what_the_server_refuses_leaves_the_connection_whole() {
    let endpoint = plain();
    let (pool, _) = pool(&endpoint.uri());
    for _ in 0..2 {
        let mut connection = pool.check_out().unwrap();
        let error = connection.command("admin", &rawdoc! { "nonsense": 1 }).unwrap_err();
        let OperationError::Connection(error) = error else { panic!("{error}") };
        assert_eq!(error.command_error().and_then(|error| error.code), Some(59));
    }
    assert_eq!(pool.snapshot().connections_created, 1);
}

#[test]
fn what_breaks_the_protocol_costs_the_connection() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    let faults = [
        Fault::Close,
        Fault::HalfClose,
        Fault::Reset,
        Fault::Cut { bytes: 9, then: Ending::Close },
        Fault::Garbage { bytes: 100 },
        Fault::ResponseTo { off_by: -1 },
        Fault::Twice,
    ];
    let count = faults.len();
    for fault in faults {
        let text = format!("{fault:?}");
        let comes_later = fault == Fault::Twice;
        set(&endpoint, at(fault, "ping").times(1));
        let mut connection = pool.check_out().unwrap();
        let outcome = connection.command("admin", &rawdoc! { "ping": 1 });
        // The second reply to one ping is found by the next command, if it was not there already.
        let outcome = match outcome {
            Ok(_) if comes_later => connection.command("admin", &rawdoc! { "ping": 1 }),
            outcome => outcome,
        };
        let OperationError::Connection(error) = outcome.unwrap_err() else { panic!("{text}") };
        assert_eq!(error.stage(), Stage::Operation, "{text}: {error}");
        assert!(!error.leaves_connection_healthy(), "{text}: {error}");
    }
    assert_eq!(closed(&events, count), vec!["error"; count]);
}

/// Half-open: the server is gone without a word, and its sockets with it as far as anybody can tell.
#[test]
fn a_peer_that_is_silent_is_left_by_its_deadline() {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(&with(&endpoint.uri(), "socketTimeoutMS=50"));
        assert!(ping(&pool));
        endpoint.with(|server, now| server.break_connections(now, Ending::Stall, None));
        let mut connection = pool.check_out().unwrap();
        let error = connection.command("admin", &rawdoc! { "ping": 1 }).unwrap_err();
        let OperationError::Connection(error) = error else { panic!("{error}") };
        assert!(error.is_timeout(), "{error}");
        drop(connection);
        assert_eq!(closed(&events, 1), ["error"]);
        assert!(ping(&pool), "and a new one works");
        pool.close();
    }
}

#[test]
fn a_limit_for_reading() {
    let endpoint = plain();
    let (pool, _) = pool(&with(&endpoint.uri(), "socketTimeoutMS=50"));
    let mut connection = pool.check_out().unwrap();
    block_ping(&endpoint, 60_000);
    let error = connection.command("admin", &rawdoc! { "ping": 1 }).unwrap_err();
    let OperationError::Connection(error) = error else { panic!("{error}") };
    let after = Duration::from_millis(50);
    assert_eq!(error.kind(), &Kind::NetworkTimeout { after }, "{error}");
}

/// More than the sockets' buffers hold, so that both sides block in between.
#[test]
fn a_large_command_and_a_large_reply() {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, _) = pool(&endpoint.uri());
        let mut connection = pool.check_out().unwrap();
        let text = "x".repeat(12_000_000);
        let documents: bson::RawArrayBuf =
            [rawdoc! { "_id": 1, "text": text.as_str() }].into_iter().collect();
        let insert = rawdoc! { "insert": "large", "documents": documents };
        let reply = connection.command("test", &insert).unwrap();
        assert_eq!(reply.get_i32("n").ok(), Some(1));
        let reply = connection.command("test", &rawdoc! { "find": "large" }).unwrap();
        assert!(reply.as_bytes().len() > text.len());
    }
}

/// 64 threads over 8 connections, with TLS and a restart of the server in the middle: it goes on.
#[test]
fn it_recovers_from_a_restart() {
    let endpoint = tls(Settings::default());
    let (pool, events) = pool(&with(&endpoint.uri(), "maxPoolSize=8"));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut good = 0;
                for _ in 0..50 {
                    let Ok(mut connection) = pool.check_out() else { continue };
                    let reply = connection.command("admin", &rawdoc! { "ping": 1 });
                    good += u32::from(reply.is_ok());
                }
                good
            })
        })
        .collect();
    seen_at_least(&endpoint, 1000);
    endpoint.with(cenote::endpoint::Server::restart);
    let good: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    // Those that were under way failed, one for each connection at most, and the new ones did not.
    assert!((64 * 50 - 16..64 * 50).contains(&good), "{good}");
    assert!(closed(&events, 0).iter().all(|reason| reason == "error"));
    pool.close();
    assert_eq!(pool.snapshot().total, 0);
}

fn seen_at_least(endpoint: &Endpoint, pings: u64) {
    while endpoint.with(|server, _| server.statistics()).commands.get("ping") < Some(&pings) {
        thread::yield_now();
    }
}

//! Commands on connections that are checked out, and what becomes of these connections.

use std::pin::pin;
use std::time::Duration;

use bson::{RawDocumentBuf, rawdoc};
use cenote::endpoint::{Ending, Endpoint, Fault};
use cenote_core::error::{ConnectionError, Kind, Stage};
use cenote_tokio::OperationError;
use tokio::time::timeout;

use crate::world::{at, closed, ping, plain, pool, set, with};

fn block_ping(endpoint: &Endpoint, milliseconds: i32) {
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
async fn seen(endpoint: &Endpoint, pings: u64) {
    while endpoint.with(|server, _| server.statistics()).commands.get("ping") != Some(&pings) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_that_is_dropped_costs_its_connection() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    block_ping(&endpoint, 60_000);
    let mut connection = pool.check_out().await.unwrap();
    {
        let ping_command = rawdoc! { "ping": 1 };
        let mut command = pin!(connection.command("admin", &ping_command));
        tokio::select! {
            biased;
            reply = command.as_mut() => panic!("{reply:?}"),
            () = seen(&endpoint, 1) => {}
        }
    }
    drop(connection);
    assert_eq!(closed(&events), ["error"], "its reply was never read");
    assert!(ping(&pool).await);
    assert_eq!(pool.snapshot().connections_created, 2);
}

#[tokio::test]
async fn an_interrupt_ends_a_command_at_once() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    block_ping(&endpoint, 60_000);
    let running = tokio::spawn({
        let pool = pool.clone();
        async move {
            let mut connection = pool.check_out().await.unwrap();
            connection.command("admin", &rawdoc! { "ping": 1 }).await.unwrap_err()
        }
    });
    seen(&endpoint, 1).await;
    pool.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(10)), true);
    let error = running.await.unwrap();
    assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
    assert!(error.is_retryable());
    assert_eq!(closed(&events), ["error"], "before stale (KX-05, SI-12)");
    pool.ready();
    assert!(ping(&pool).await);
}

#[tokio::test]
async fn what_the_server_refuses_leaves_the_connection_whole() {
    let endpoint = plain();
    let (pool, _) = pool(&endpoint.uri());
    for _ in 0..2 {
        let mut connection = pool.check_out().await.unwrap();
        let error = connection.command("admin", &rawdoc! { "nonsense": 1 }).await.unwrap_err();
        let OperationError::Connection(error) = error else { panic!("{error}") };
        assert_eq!(error.command_error().and_then(|error| error.code), Some(59));
    }
    assert_eq!(pool.snapshot().connections_created, 1);
}

#[tokio::test]
async fn what_breaks_the_protocol_costs_the_connection() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    let faults = [
        Fault::Close,
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
        let mut connection = pool.check_out().await.unwrap();
        let outcome = connection.command("admin", &rawdoc! { "ping": 1 }).await;
        // The second reply to one ping is found by the next command, if it was not there already.
        let outcome = match outcome {
            Ok(_) if comes_later => connection.command("admin", &rawdoc! { "ping": 1 }).await,
            outcome => outcome,
        };
        let OperationError::Connection(error) = outcome.unwrap_err() else { panic!("{text}") };
        assert_eq!(error.stage(), Stage::Operation, "{text}: {error}");
        assert!(!error.leaves_connection_healthy(), "{text}: {error}");
    }
    assert_eq!(closed(&events), vec!["error"; count]);
}

#[tokio::test]
async fn a_limit_for_reading() {
    let endpoint = plain();
    let (pool, _) = pool(&with(&endpoint.uri(), "socketTimeoutMS=50"));
    let mut connection = pool.check_out().await.unwrap();
    block_ping(&endpoint, 60_000);
    let error = connection.command("admin", &rawdoc! { "ping": 1 }).await.unwrap_err();
    let OperationError::Connection(error) = error else { panic!("{error}") };
    let after = Duration::from_millis(50);
    assert_eq!(error.kind(), &Kind::NetworkTimeout { after }, "{error}");
}

/// 64 tasks over 8 connections, with TLS and a restart of the server in the middle: it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_recovers_from_a_restart() {
    let endpoint = crate::world::tls(cenote::endpoint::Settings::default());
    let (pool, events) = pool(&with(&endpoint.uri(), "maxPoolSize=8"));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move {
                let mut good = 0;
                for _ in 0..50 {
                    let Ok(mut connection) = pool.check_out().await else { continue };
                    good += u32::from(
                        connection.command("admin", &rawdoc! { "ping": 1 }).await.is_ok(),
                    );
                }
                good
            })
        })
        .collect();
    seen_at_least(&endpoint, 1000).await;
    endpoint.with(cenote::endpoint::Server::restart);
    let mut good = 0;
    for task in tasks {
        good += timeout(Duration::from_secs(60), task).await.expect("nothing hangs").unwrap();
    }
    // Those that were under way failed, one for each connection at most, and the new ones did not.
    assert!((64 * 50 - 16..64 * 50).contains(&good), "{good}");
    assert!(closed(&events).iter().all(|reason| reason == "error"));
    pool.close().await;
    assert_eq!(pool.snapshot().total, 0);
}

async fn seen_at_least(endpoint: &Endpoint, pings: u64) {
    while endpoint.with(|server, _| server.statistics()).commands.get("ping") < Some(&pings) {
        tokio::task::yield_now().await;
    }
}

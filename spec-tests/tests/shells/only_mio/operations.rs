//! Commands that are told by when to stop.

use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_endpoint::Fault;
use cenote_mio::OperationError;

use super::world::{ping, pool};
use crate::world::{at, block_ping, closed, plain, set, with};

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

// CS-11: nothing was sent, nothing failed, and the connection is unchanged.
#[test]
fn a_command_without_time_is_not_sent() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    let mut connection = pool.check_out().unwrap();
    for _ in 0..3 {
        let ping = rawdoc! { "ping": 1 };
        let error = connection.command_before("admin", &ping, Instant::now()).unwrap_err();
        let OperationError::Connection(error) = error else { panic!("{error}") };
        assert!(error.is_timeout(), "{error}");
        assert!(connection.is_reusable());
    }
    drop(connection);
    assert!(ping(&pool));
    assert_eq!(pool.snapshot().connections_created, 1);
    assert_eq!(endpoint.with(|server, _now| server.statistics()).commands.get("ping"), Some(&1));
    assert_eq!(closed(&events, 0), [""; 0]);
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

//! What SDAM makes of an application's failures.

use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::client::{ClientError, Selector};
use cenote_core::pool::Status;
use cenote_endpoint::Role;

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, commands, fail_point, member, standalone};

on_all_runtimes!(
    a_network_error,
    description_and_pool_change_together,
    six_operations_clear_once,
    what_does_not_clear,
);

fn find() -> RawDocumentBuf {
    rawdoc! { "find": "birds" }
}

// SD-26, SD-27, SD-28: a network error marks the server Unknown, clears its pool without an interrupt,
// cancels the check in progress; and the next request waits for half a second and not for a
// heartbeat.
fn a_network_error(shell: Shell) {
    let only = member(Role::Primary);
    let uri = "heartbeatFrequencyMS=600000&serverSelectionTimeoutMS=20000";
    let world = World::of(shell, &[&only], uri);
    world.ping();
    fail_point(&only, rawdoc! { "failCommands": ["find"], "closeConnection": true }, 1);
    let error = world.command(&find()).expect_err("it fails");
    assert!(matches!(error, ClientError::Operation(_)), "{error}");
    assert!(error.is_retryable());
    assert_eq!(world.kinds(), [None]);
    world.until_told("ConnectionPoolCleared", 1);
    assert_eq!(world.interrupts(), 0);
    let begin = Instant::now();
    assert!(world.command(&find()).is_ok());
    assert!(begin.elapsed() < Duration::from_secs(20));
    world.until("reported", |world| world.server_events().contains(&"ServerHeartbeatFailed"));
    world.client.close();
}

// SD-04, SD-05, CLR-15: when an error is returned, the server is Unknown and its pool is paused. Callers that
// wait for the server never find it known with a paused pool.
fn description_and_pool_change_together(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=600000");
    world.ping();
    for round in 1..=3 {
        fail_point(&only, rawdoc! { "failCommands": ["find"], "closeConnection": true }, 1);
        assert!(world.command(&find()).is_err());
        let server = &world.client.servers()[0];
        assert_eq!((server.kind, server.pool.status), (None, Status::Paused));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| world.ping());
            }
        });
        world.until_told("ConnectionPoolCleared", round);
        world.until_told("ConnectionPoolReady", round + 1);
    }
    world.client.close();
}

// SD-29, SD-31: six operations that meet a server which shuts down clear once.
fn six_operations_clear_once(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "maxPoolSize=6&maxConnecting=6");
    world.ping();
    let out: Vec<_> = (0..6).map(|_| world.check_out(&Selector::Primary)).collect();
    let data = rawdoc! {
        "failCommands": ["find"], "errorCode": 91, "blockConnection": true, "blockTimeMS": 100,
    };
    fail_point(&only, data, 6);
    thread::scope(|scope| {
        let find = |mut connection: Box<dyn crate::shells::AnyConnection>| {
            scope.spawn(move || connection.command("zoo", &find()).is_err())
        };
        let operations: Vec<_> = out.into_iter().map(find).collect();
        for operation in operations {
            assert!(operation.join().expect("no panic"), "it fails");
        }
    });
    world.until_told("ConnectionPoolCleared", 1);
    assert_eq!(commands(&only, "find"), 6);
    world.client.close();
}

// SD-29: no longer a primary, but the connections are good; and SD-25: a timeout says nothing.
fn what_does_not_clear(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "socketTimeoutMS=200&heartbeatFrequencyMS=500");
    world.ping();
    fail_point(&only, rawdoc! { "failCommands": ["find"], "errorCode": 10107 }, 1);
    assert!(world.command(&find()).is_err());
    let changed = |event: &&&str| **event == "ServerDescriptionChanged";
    world.until("Unknown", |world| world.server_events().iter().filter(changed).count() >= 2);
    world.ping();
    let data = rawdoc! { "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 1000 };
    fail_point(&only, data, 1);
    assert!(world.command(&find()).is_err());
    world.ping();
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    world.client.close();
}

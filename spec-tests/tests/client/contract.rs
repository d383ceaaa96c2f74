//! What SDAM makes of an application's failures.

use std::time::Duration;

use bson::{RawDocumentBuf, rawdoc};
use cenote::endpoint::{Endpoint, Role};
use cenote_tokio::{ClientError, Selector};
use tokio::task::JoinSet;

use crate::world::{World, commands, member, standalone};

fn fail_point(endpoint: &Endpoint, data: RawDocumentBuf, times: i32) {
    let command = rawdoc! {
        "configureFailPoint": "failCommand", "mode": { "times": times }, "data": data,
    };
    endpoint.with(|server, _| server.set_fail_point(&command).expect("a fail point"));
}

fn find() -> RawDocumentBuf {
    rawdoc! { "find": "birds" }
}

/// SD-26, SD-27, SD-28: a network error marks the server Unknown, clears its pool without an interrupt,
/// cancels the check in progress; and whoever asks next waits for half a second and not for a
/// heartbeat.
#[tokio::test]
async fn a_network_error() {
    let only = member(Role::Primary);
    let uri = "heartbeatFrequencyMS=600000&serverSelectionTimeoutMS=20000";
    let world = World::of(&[&only], uri);
    world.ping().await;
    fail_point(&only, rawdoc! { "failCommands": ["find"], "closeConnection": true }, 1);
    let error = world.client.command("zoo", &find()).await.unwrap_err();
    assert!(matches!(error, ClientError::Operation(_)), "{error}");
    assert!(error.is_retryable());
    assert_eq!(world.kinds(), [None]);
    assert_eq!(world.count("ConnectionPoolCleared"), 1);
    assert_eq!(world.interrupts(), 0);
    let begin = std::time::Instant::now();
    assert!(world.client.command("zoo", &find()).await.is_ok());
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(world.server_events().contains(&"ServerHeartbeatFailed"));
    world.client.close().await;
}

/// SD-29, SD-31: six operations that meet a server which shuts down clear once.
#[tokio::test]
async fn six_operations_clear_once() {
    let only = member(Role::Primary);
    let world = World::of(&[&only], "maxPoolSize=6&maxConnecting=6");
    world.ping().await;
    let mut out = Vec::new();
    for _ in 0..6 {
        out.push(world.client.check_out(&Selector::Primary).await.expect("a connection"));
    }
    let data = rawdoc! {
        "failCommands": ["find"], "errorCode": 91, "blockConnection": true, "blockTimeMS": 100,
    };
    fail_point(&only, data, 6);
    let mut operations = JoinSet::new();
    for mut connection in out {
        operations.spawn(async move { connection.command("zoo", &find()).await.is_err() });
    }
    assert!(operations.join_all().await.into_iter().all(|failed| failed));
    assert_eq!(world.count("ConnectionPoolCleared"), 1);
    assert_eq!(commands(&only, "find"), 6);
    world.client.close().await;
}

/// SD-29: no longer a primary, but the connections are good; and SD-25: a timeout says nothing.
#[tokio::test]
async fn what_does_not_clear() {
    let only = standalone();
    let world = World::of(&[&only], "socketTimeoutMS=200&heartbeatFrequencyMS=500");
    world.ping().await;
    fail_point(&only, rawdoc! { "failCommands": ["find"], "errorCode": 10107 }, 1);
    assert!(world.client.command("zoo", &find()).await.is_err());
    let unknown = |event: &&&str| **event == "ServerDescriptionChanged";
    assert_eq!(world.server_events().iter().filter(unknown).count(), 2);
    world.ping().await;
    let data = rawdoc! { "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 1000 };
    fail_point(&only, data, 1);
    assert!(world.client.command("zoo", &find()).await.is_err());
    world.ping().await;
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    world.client.close().await;
}

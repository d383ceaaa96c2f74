//! Failures that a client orders from the endpoint.

use std::time::Duration;

use bson::doc;
use cenote_endpoint::{ReplicaSet, Topology};
use mongodb::Client;
use mongodb::error::ErrorKind;

use crate::official_driver::client::{Diary, birds, code, connect, fail, options, plain};

#[tokio::test]
async fn a_code_and_labels() {
    let endpoint = plain(Topology::Standalone);
    let client = connect(&endpoint.uri(), &["retryReads=false"]).await;
    let data = doc! { "failCommands": ["find"], "errorCode": 96, "errorLabels": ["Tired"] };
    fail(&client, doc! { "times": 2 }, data).await;
    for _ in 0..2 {
        let error = birds(&client).find_one(doc! {}).await.unwrap_err();
        assert_eq!(code(&error), Some(96), "{error}");
        assert!(error.contains_label("Tired"));
    }
    assert_eq!(birds(&client).find_one(doc! {}).await.unwrap(), None);
}

#[tokio::test]
async fn a_closed_connection() {
    let endpoint = plain(Topology::Standalone);
    let client = connect(&endpoint.uri(), &["retryReads=false"]).await;
    fail(&client, doc! { "times": 1 }, doc! { "failCommands": ["find"], "closeConnection": true })
        .await;
    let error = birds(&client).find_one(doc! {}).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Io(_)), "{error}");
    assert_eq!(birds(&client).find_one(doc! {}).await.unwrap(), None);
}

/// This driver has no time limit for a reply, so that the test brings one.
#[tokio::test]
async fn one_application_is_blocked() {
    let endpoint = plain(Topology::Standalone);
    let slow = connect(&endpoint.uri(), &["appName=slow"]).await;
    let quick = connect(&endpoint.uri(), &["appName=quick"]).await;
    let data = doc! {
        "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 60_000,
        "appName": "slow",
    };
    fail(&quick, doc! { "times": 1 }, data).await;
    let (slow, quick) = (birds(&slow), birds(&quick));
    let blocked = tokio::time::timeout(Duration::from_millis(300), slow.find_one(doc! {}));
    let (quick, blocked) = tokio::join!(quick.find_one(doc! {}), blocked);
    assert_eq!(quick.unwrap(), None, "others are spared");
    assert!(blocked.is_err(), "no reply");
}

/// The endpoint keeps to what retries rely on: the command that was cut off has done nothing.
#[tokio::test]
async fn a_retryable_write_is_made_once() {
    let endpoint = plain(Topology::ReplicaSet(ReplicaSet::primary("cenote")));
    let diary = Diary::default();
    let mut options = options(&endpoint.uri(), &[]).await;
    diary.write_for(&mut options);
    let client = Client::with_options(options).unwrap();
    let data = doc! { "failCommands": ["insert"], "closeConnection": true };
    fail(&client, doc! { "times": 1 }, data).await;
    birds(&client).insert_one(doc! { "_id": "wren" }).await.unwrap();
    let numbers: Vec<_> =
        diary.commands("insert").iter().map(|it| it.command.get_i64("txnNumber").ok()).collect();
    assert!(matches!(numbers[..], [Some(first), Some(second)] if first == second), "{numbers:?}");
    assert_eq!(birds(&client).count_documents(doc! {}).await.unwrap(), 1);
}

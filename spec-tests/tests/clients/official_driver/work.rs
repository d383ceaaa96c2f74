//! Much at once.

use std::collections::BTreeSet;

use bson::{Document, doc};
use cenote_endpoint::Topology;
use mongodb::Client;

use crate::official_driver::client::{birds, connect, secure};

const DOCUMENTS: i32 = 10_000;
const TASKS: i32 = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_documents_from_32_tasks() {
    let endpoint = secure(Topology::Standalone);
    let client = connect(&endpoint.uri(), &["compressors=zstd", "maxPoolSize=8"]).await;
    let tasks: Vec<_> =
        (0..TASKS).map(|first| tokio::spawn(insert(client.clone(), first))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(find_all(client.clone()))).collect();
    for task in tasks {
        assert!(task.await.unwrap().into_iter().eq(0..DOCUMENTS));
    }
    let count = birds(&client).count_documents(doc! {}).await.unwrap();
    assert_eq!(i32::try_from(count), Ok(DOCUMENTS));
    assert!(birds(&client).insert_one(doc! { "_id": 1 }).await.is_err(), "it is there already");
    let statistics = endpoint.with(|server, _| server.statistics());
    // The pool's, and those of the monitor.
    assert!(statistics.accepted <= 8 + 2, "{}", statistics.accepted);
    assert_eq!((statistics.protocol_errors, statistics.unknown_commands), (0, 0));
}

/// Some one by one and the others at once.
async fn insert(client: Client, first: i32) {
    let mine = (first..DOCUMENTS).step_by(TASKS as usize).map(|id| doc! { "_id": id });
    let mut mine: Vec<Document> = mine.collect();
    let others = mine.split_off(20);
    for bird in mine {
        birds(&client).insert_one(&bird).await.expect("an insert");
        let found = birds(&client).find_one(bird.clone()).await.expect("a find");
        assert_eq!(found, Some(bird));
    }
    birds(&client).insert_many(others).await.expect("an insert");
}

async fn find_all(client: Client) -> BTreeSet<i32> {
    let mut found = birds(&client).find(doc! {}).batch_size(1000).await.expect("a find");
    let mut ids = BTreeSet::new();
    while found.advance().await.expect("a document") {
        ids.insert(found.current().get_i32("_id").expect("an _id"));
    }
    ids
}

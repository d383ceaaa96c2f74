//! Several services behind one address.

use std::collections::BTreeSet;

use bson::doc;
use cenote_endpoint::{LoadBalanced, Topology};
use mongodb::Client;
use mongodb::event::cmap::CmapEvent;

use crate::official_driver::client::{Diary, birds, fail, options, secure};

#[tokio::test]
async fn connections_know_their_service() {
    let endpoint = secure(Topology::LoadBalanced(LoadBalanced { services: 2 }));
    let diary = Diary::default();
    let mut options = options(&endpoint.uri(), &["retryReads=false"]).await;
    assert_eq!(options.load_balanced, Some(true));
    diary.write_for(&mut options);
    let client = Client::with_options(options).unwrap();
    let birds = birds(&client);
    birds.insert_many((0..100).map(|n| doc! { "_id": n })).await.unwrap();

    // An open cursor keeps its connection, so that the other one is another service's.
    let mut cursors = Vec::new();
    for _ in 0..2 {
        let mut cursor = birds.find(doc! {}).batch_size(10).await.unwrap();
        assert!(cursor.advance().await.unwrap());
        cursors.push(cursor);
    }
    let services: BTreeSet<_> = diary.commands("find").iter().map(|it| it.service_id).collect();
    assert!(services.len() == 2 && !services.contains(&None), "{services:?}");
    for mut cursor in cursors {
        let mut count = 1;
        while cursor.advance().await.unwrap() {
            count += 1;
        }
        assert_eq!(count, 100);
    }
    assert!(diary.commands("getMore").iter().all(|it| services.contains(&it.service_id)));

    fail(&client, doc! { "times": 1 }, doc! { "failCommands": ["find"], "closeConnection": true })
        .await;
    assert!(birds.find_one(doc! {}).await.is_err());
    let failed = diary.commands("find").last().and_then(|it| it.service_id);
    let events = diary.pool.lock().unwrap();
    let cleared: Vec<_> = events.iter().filter_map(cleared_service).collect();
    assert_eq!(cleared, [failed]);
}

fn cleared_service(event: &CmapEvent) -> Option<Option<bson::oid::ObjectId>> {
    let CmapEvent::PoolCleared(cleared) = event else { return None };
    Some(cleared.service_id)
}

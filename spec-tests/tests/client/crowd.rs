//! Many sockets, many clients, many pools.

use bson::rawdoc;
use cenote_tokio::{ClientError, Selector};
use tokio::task::JoinSet;

use crate::world::{World, open, standalone, three, until_open};

/// ND-02, ND-03: 106 sockets if only the primary is used, 306 if all three are.
#[tokio::test]
async fn a_hundred_a_server_and_two_more() {
    let set = three();
    let world = World::of(&[&set[0], &set[1], &set[2]], "replicaSet=rs0&maxConnecting=20");
    world.until_all_known().await;
    let mut out = Vec::new();
    for (used, all) in [(1, 106), (3, 306)] {
        for endpoint in &set[used / 3..used] {
            let pool = world.client.pool(&endpoint.address()).expect("of this client");
            let mut asking = JoinSet::new();
            for _ in 0..100 {
                let pool = pool.clone();
                asking.spawn(async move { pool.check_out().await.expect("a connection") });
            }
            out.extend(asking.join_all().await);
        }
        for endpoint in &set {
            until_open(endpoint, if open(endpoint) < 100 { 2 } else { 102 }).await;
        }
        assert_eq!(set.iter().map(open).sum::<u64>(), all);
    }
    drop(out);
    world.client.close().await;
}

/// Fifty clients of twenty servers each: a thousand pools and a thousand monitors in one process.
#[tokio::test]
async fn fifty_clients_of_twenty_pools() {
    let endpoints: Vec<_> = (0..20).map(|_| standalone()).collect();
    let references: Vec<_> = endpoints.iter().collect();
    let worlds: Vec<_> = (0..50).map(|_| World::of(&references, "")).collect();
    let mut asking = JoinSet::new();
    for world in &worlds {
        for endpoint in &endpoints {
            let (client, address) = (world.client.clone(), endpoint.address());
            asking.spawn(async move {
                let selector = Selector::Address(address);
                let ping = client.with_connection(&selector, async |connection| {
                    let ping = rawdoc! { "ping": 1 };
                    Ok::<_, ClientError>(connection.command("admin", &ping).await?)
                });
                ping.await.is_ok()
            });
        }
    }
    assert!(asking.join_all().await.into_iter().all(|pinged| pinged));
    for world in &worlds {
        assert_eq!(world.count("ConnectionPoolCleared"), 0);
        world.client.close().await;
    }
    for endpoint in &endpoints {
        until_open(endpoint, 0).await;
    }
}

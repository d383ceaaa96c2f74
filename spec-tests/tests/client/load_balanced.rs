//! Several services behind one port.

use bson::{RawBsonRef, rawdoc};
use cenote::endpoint::{LoadBalanced, Topology};
use cenote_core::connect::ServerKind;
use cenote_core::pool::Purpose;
use cenote_tokio::{ClientError, Selector};

use crate::world::{World, open, start};

fn balanced() -> cenote::endpoint::Endpoint {
    start(Topology::LoadBalanced(LoadBalanced { services: 4 }))
}

/// LB-08, LB-40: nobody watches, and the pool is ready at once.
#[tokio::test]
async fn no_monitors_and_ready_at_once() {
    let endpoint = balanced();
    let world = World::of(&[&endpoint], "loadBalanced=true");
    assert_eq!(world.pool_events(), ["ConnectionPoolCreated", "ConnectionPoolReady"]);
    assert_eq!(world.kinds(), [Some(ServerKind::LoadBalancer)]);
    for selector in [Selector::Primary, Selector::Secondary, Selector::Any] {
        assert!(world.client.check_out(&selector).await.is_ok());
    }
    world.ping().await;
    assert_eq!(open(&endpoint), 1, "one connection of the pool, and nothing else");
    assert!(world.server_events().is_empty());
    world.client.close().await;
}

/// LB-30, LB-31, LB-32: a cursor goes on where it began, and its connection comes back at its end.
#[tokio::test]
async fn a_cursor_is_pinned() {
    let endpoint = balanced();
    let world = World::of(&[&endpoint], "loadBalanced=true");
    let mut pinned =
        world.client.pin(&Selector::Primary, Purpose::Cursor).await.expect("a connection");
    assert!(pinned.is_pinned());
    let id = pinned.with_connection(async |connection| {
        let documents = [1, 2, 3, 4].map(|number| rawdoc! { "_id": number });
        let documents: bson::RawArrayBuf = documents.into_iter().collect();
        let insert = rawdoc! { "insert": "birds", "documents": documents };
        connection.command("zoo", &insert).await?;
        let reply = connection.command("zoo", &rawdoc! { "find": "birds", "batchSize": 2 }).await?;
        let cursor = reply.get_document("cursor").expect("a cursor");
        let id = cursor.get("id").expect("whole").and_then(RawBsonRef::as_i64);
        Ok::<_, ClientError>(id.expect("a number"))
    });
    let id = id.await.expect("the first batch");
    // Others are served by other services meanwhile.
    for _ in 0..3 {
        world.ping().await;
    }
    let more = pinned.with_connection(async |connection| {
        let more = rawdoc! { "getMore": id, "collection": "birds" };
        Ok::<_, ClientError>(connection.command("zoo", &more).await?)
    });
    assert!(more.await.is_ok());
    let in_use = |world: &World| {
        let servers = world.client.servers();
        (servers[0].pool.in_use_by_cursors, servers[0].pool.in_use)
    };
    assert_eq!(in_use(&world), (1, 1));
    pinned.unpin();
    assert_eq!(in_use(&world), (0, 0));
    world.client.close().await;
}

/// ER-06, LB-06: who waits in vain is told what keeps the connections.
#[tokio::test]
async fn who_keeps_the_connections() {
    let endpoint = balanced();
    let options = "loadBalanced=true&maxPoolSize=2&waitQueueTimeoutMS=50";
    let world = World::of(&[&endpoint], options);
    let pin = |purpose| world.client.pin(&Selector::Primary, purpose);
    let _cursor = pin(Purpose::Cursor).await.expect("a connection");
    let _transaction = pin(Purpose::Transaction).await.expect("a connection");
    let error = world.client.check_out(&Selector::Primary).await.unwrap_err();
    let expected = "maxPoolSize: 2, connections in use by cursors: 1, connections in use by \
                    transactions: 1, connections in use by other operations: 0";
    assert!(error.to_string().contains(expected), "{error}");
}

/// LB-22: a failure clears one service, and the pool stays ready.
#[tokio::test]
async fn a_failure_clears_one_service() {
    let endpoint = balanced();
    let world = World::of(&[&endpoint], "loadBalanced=true");
    let fail = rawdoc! {
        "configureFailPoint": "failCommand", "mode": { "times": 1 },
        "data": { "failCommands": ["find"], "closeConnection": true },
    };
    endpoint.with(|server, _| server.set_fail_point(&fail).expect("a fail point"));
    assert!(world.client.command("zoo", &rawdoc! { "find": "birds" }).await.is_err());
    assert_eq!(world.count("ConnectionPoolCleared"), 1);
    assert_eq!(world.kinds(), [Some(ServerKind::LoadBalancer)]);
    world.ping().await;
    assert_eq!(world.count("ConnectionPoolReady"), 1);
    world.client.close().await;
}

/// Anywhere else every connection to the server will do, and none is kept.
#[tokio::test]
async fn nothing_is_pinned_to_a_server() {
    let only = crate::world::standalone();
    let world = World::of(&[&only], "");
    let mut pinned =
        world.client.pin(&Selector::Primary, Purpose::Transaction).await.expect("a connection");
    assert!(!pinned.is_pinned());
    for _ in 0..2 {
        let ping = pinned.with_connection(async |connection| {
            Ok::<_, ClientError>(connection.command("admin", &rawdoc! { "ping": 1 }).await?)
        });
        assert!(ping.await.is_ok());
        assert_eq!(world.client.servers()[0].pool.in_use, 0);
    }
    world.client.close().await;
}

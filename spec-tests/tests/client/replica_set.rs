//! Three members, each watched.

use bson::rawdoc;
use cenote::endpoint::{Role, Server};
use cenote_core::connect::ServerKind;
use cenote_tokio::{ClientError, Mongo, PooledConnection, Selector};

use crate::world::{World, commands, member, open, three, until_open};

async fn address_of(world: &World, selector: &Selector) -> String {
    let connection: PooledConnection<Mongo> =
        world.client.check_out(selector).await.expect("a connection");
    format!("{connection:?}")
}

/// SD-02, SD-07: what each member is, a pool for each, and a server for each wish.
#[tokio::test]
async fn each_member_is_seen_as_what_it_is() {
    let set = three();
    let world = World::of(&[&set[0], &set[1], &set[2]], "replicaSet=rs0");
    world.ping().await;
    world.until_all_known().await;
    let primary = Some(ServerKind::RsPrimary);
    let secondary = Some(ServerKind::RsSecondary);
    assert_eq!(world.kinds(), [primary, secondary, secondary]);
    let at = |index: usize| format!("{:?}", set[index].address());
    let chosen = address_of(&world, &Selector::Primary).await;
    assert!(chosen.contains(&at(0)), "{chosen}");
    let chosen = address_of(&world, &Selector::Secondary).await;
    assert!(chosen.contains(&at(1)) || chosen.contains(&at(2)), "{chosen}");
    let chosen = address_of(&world, &Selector::Address(set[2].address())).await;
    assert!(chosen.contains(&at(2)), "{chosen}");
    assert!(world.client.pool(&set[1].address()).is_some());
    let status = world.client.servers()[0].to_string();
    assert!(status.contains(": RSPrimary of rs0 [ready"), "{status}");
    world.client.close().await;
}

/// SD-50, SD-51, ND-03: two sockets a server, which are not the pool's and log in to nothing.
#[tokio::test]
async fn two_monitoring_sockets_a_server() {
    let set = three();
    let world = World::of(&[&set[0], &set[1], &set[2]], "replicaSet=rs0&maxPoolSize=5");
    world.until_all_known().await;
    for endpoint in &set {
        until_open(endpoint, 2).await;
    }
    // All that a pool may have, besides.
    let pool = world.client.pool(&set[0].address()).expect("of this client");
    let mut out = Vec::new();
    for _ in 0..5 {
        out.push(pool.check_out().await.expect("a connection"));
    }
    assert_eq!(open(&set[0]), 7);
    assert_eq!([open(&set[1]), open(&set[2])], [2, 2]);
    assert_eq!(commands(&set[0], "saslStart"), 0);
    drop(out);
    world.client.close().await;
    for endpoint in &set {
        until_open(endpoint, 0).await;
    }
}

/// A step-down is told by the stream, not found out ten seconds later; and the pool of who stepped
/// down stays as it is (SD-08).
#[tokio::test]
async fn a_change_of_primary() {
    let set = [member(Role::Primary), member(Role::Secondary)];
    let world = World::of(&[&set[0], &set[1]], "replicaSet=rs0&heartbeatFrequencyMS=60000");
    world.ping().await;
    world.until_all_known().await;
    set[0].with(Server::step_down);
    set[1].with(Server::step_up);
    let (primary, secondary) = (Some(ServerKind::RsPrimary), Some(ServerKind::RsSecondary));
    world.until("changed", |world| world.kinds() == [secondary, primary]).await;
    let on = world.client.with_connection(&Selector::Primary, async |connection| {
        connection.command("admin", &rawdoc! { "ping": 1 }).await?;
        Ok::<_, ClientError>(format!("{connection:?}"))
    });
    let on = on.await.expect("a reply");
    assert!(on.contains(&format!("{:?}", set[1].address())), "{on}");
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    world.client.close().await;
}

/// SD-09: the pool is ready after the first heartbeat, and each check ends.
#[tokio::test]
async fn what_is_told_of_a_server() {
    let only = member(Role::Primary);
    let world = World::of(&[&only], "");
    world.ping().await;
    let told = world.server_events();
    let expected =
        ["ServerHeartbeatStarted", "ServerHeartbeatSucceeded", "ServerDescriptionChanged"];
    assert_eq!(told[..3], expected);
    let pool = world.pool_events();
    assert_eq!(pool[..2], ["ConnectionPoolCreated", "ConnectionPoolReady"]);
    world.client.close().await;
}

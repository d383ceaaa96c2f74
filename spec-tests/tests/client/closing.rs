//! Closing a client, and dropping it.

use std::time::Duration;

use bson::rawdoc;
use cenote::endpoint::{Fault, Script, Server};
use cenote_tokio::{ClientError, SelectionError, Selector};
use tokio::time::{Instant, timeout};

use crate::world::{World, standalone, three, until_open};

/// SD-10: monitors end, pools close in their order, nothing is left.
#[tokio::test]
async fn nothing_is_left() {
    let set = three();
    let world = World::of(&[&set[0], &set[1], &set[2]], "replicaSet=rs0&minPoolSize=2");
    world.ping().await;
    world.until_all_known().await;
    world.client.close().await;
    let addresses: Vec<_> = set.iter().map(|it| it.address().to_string()).collect();
    assert_eq!(world.addresses_of("ConnectionPoolClosed"), addresses);
    for endpoint in &set {
        until_open(endpoint, 0).await;
    }
    let error = world.client.command("admin", &rawdoc! { "ping": 1 }).await.unwrap_err();
    assert!(matches!(error, ClientError::Selection(SelectionError::Closed)), "{error}");
    // Again does no harm.
    world.client.close().await;
}

/// Whoever waits for a server hears of it.
#[tokio::test]
async fn who_waits_hears_of_it() {
    let world = World::new("mongodb://127.0.0.1:1");
    let ping = rawdoc! { "ping": 1 };
    let (outcome, ()) = tokio::join!(world.client.command("admin", &ping), async {
        world.until("refused", |world| world.error().is_some()).await;
        world.client.close().await;
    });
    assert!(matches!(outcome, Err(ClientError::Selection(SelectionError::Closed))));
}

/// Whoever gives up waiting for a server leaves nothing behind, and a close that is given up has
/// closed.
#[tokio::test]
async fn waits_that_are_given_up() {
    let only = standalone();
    only.with(|server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
    });
    let world = World::of(&[&only], "");
    {
        let mut waiting = std::pin::pin!(world.client.check_out(&Selector::Any));
        tokio::select! {
            biased;
            outcome = &mut waiting => panic!("{outcome:?}"),
            () = world.until("refused", |world| world.error().is_some()) => {}
        }
    }
    only.with(Server::clear_faults);
    let connection = world.client.check_out(&Selector::Any).await.expect("a connection");
    assert_eq!(world.count("ConnectionCheckOutStarted"), 1);
    {
        let closing = std::pin::pin!(world.client.close());
        assert!(timeout(Duration::ZERO, closing).await.is_err(), "one is still out");
    }
    let error = world.client.check_out(&Selector::Any).await.unwrap_err();
    assert!(matches!(error, ClientError::Selection(SelectionError::Closed)), "{error}");
    drop(connection);
    until_open(&only, 0).await;
}

/// What is still out is told, and comes home later.
#[tokio::test]
async fn what_is_still_out() {
    let only = standalone();
    let world = World::of(&[&only], "");
    let connection = world.client.check_out(&Selector::Any).await.expect("a connection");
    let deadline = Instant::now() + Duration::from_millis(20);
    let error = world.client.close_before(deadline).await.unwrap_err();
    assert_eq!(error.in_use, 1);
    drop(connection);
    world.client.close().await;
    until_open(&only, 0).await;
}

/// The last clone that is dropped closes, sockets of monitors and of pools.
#[tokio::test]
async fn dropped_it_closes() {
    let only = standalone();
    let world = World::of(&[&only], "");
    world.ping().await;
    let World { client, .. } = world;
    let clone = client.clone();
    drop(client);
    assert!(clone.command("admin", &rawdoc! { "ping": 1 }).await.is_ok());
    drop(clone);
    until_open(&only, 0).await;
}

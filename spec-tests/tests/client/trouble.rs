//! Servers that fall silent, break, go away and come back.

use std::time::Duration;

use bson::rawdoc;
use cenote::endpoint::{Ending, Fault, Role, Script, Server};
use cenote_core::connect::ServerKind;
use cenote_tokio::{OperationError, Selector};

use crate::world::{SOON, World, member, standalone, tell, three};

/// SD-41: who hangs is cleared with an interrupt, within connectTimeoutMS and heartbeatFrequencyMS; the
/// operations that hang with it fail at once, with the error that may be tried again; and it is asked
/// again at once (SM-06).
#[tokio::test]
async fn a_server_that_stalls() {
    let only = member(Role::Primary);
    let world = World::of(&[&only], SOON);
    let mut connection = world.client.check_out(&Selector::Primary).await.expect("a connection");
    tell(&only, |server, now| server.break_connections(now, Ending::Stall, None));
    let begin = std::time::Instant::now();
    let error = connection.command("admin", &rawdoc! { "ping": 1 }).await.unwrap_err();
    assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
    assert!(error.is_retryable());
    // One second in theory; socketTimeoutMS is without limit.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    drop(connection);
    assert_eq!(world.interrupts(), 1);
    world.ping().await;
    assert!(world.count("ConnectionPoolReady") >= 2);
    world.client.close().await;
}

/// SD-40: killed, it is Unknown, visibly so; back again, it is found within a heartbeat.
#[tokio::test]
async fn a_server_that_dies_and_returns() {
    let set = three();
    let world = World::of(&[&set[0], &set[1], &set[2]], &format!("replicaSet=rs0&{SOON}"));
    world.ping().await;
    world.until_all_known().await;
    tell(&set[0], |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
        server.break_connections(now, Ending::Reset, None);
    });
    world.until("Unknown", |world| world.kinds()[0].is_none()).await;
    world
        .until("refused", |world| {
            let error = world.client.servers()[0].description.error.clone();
            error.is_some_and(|error| error.to_string().contains("refused"))
        })
        .await;
    // The others do not mind.
    assert!(world.kinds()[1..].iter().all(|&kind| kind == Some(ServerKind::RsSecondary)));
    assert!(world.client.check_out(&Selector::Secondary).await.is_ok());
    let others = [set[1].address().to_string(), set[2].address().to_string()];
    let cleared = world.addresses_of("ConnectionPoolCleared");
    assert!(cleared.iter().all(|address| !others.contains(address)), "{cleared:?}");
    tell(&set[0], Server::clear_faults);
    world.ping().await;
    assert_eq!(world.kinds()[0], Some(ServerKind::RsPrimary));
    world.client.close().await;
}

/// Another process at the same place: its count of changes begins anew, and is news all the same.
#[tokio::test]
async fn a_server_that_restarts() {
    let only = member(Role::Primary);
    let world = World::of(&[&only], SOON);
    world.ping().await;
    let before = world.client.servers()[0].description.topology_version;
    tell(&only, Server::restart);
    world
        .until("another process", |world| {
            let after = world.client.servers()[0].description.topology_version;
            after.is_some() && after.map(|it| it.process_id) != before.map(|it| it.process_id)
        })
        .await;
    world.ping().await;
    world.client.close().await;
}

/// SM-05: whoever needs a server has it checked; nobody waits for the next heartbeat.
#[tokio::test]
async fn who_waits_for_a_server_has_it_checked() {
    let only = standalone();
    tell(&only, |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
    });
    let world = World::of(&[&only], "heartbeatFrequencyMS=600000&connectTimeoutMS=5000");
    world.until("refused", |world| world.error().is_some()).await;
    let begin = std::time::Instant::now();
    let waiting = world.ping();
    tokio::join!(waiting, async {
        tell(&only, Server::clear_faults);
    });
    assert!(begin.elapsed() < Duration::from_secs(60));
    world.client.close().await;
}

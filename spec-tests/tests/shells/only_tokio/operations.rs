//! A command whose future was dropped.

use std::pin::pin;

use bson::rawdoc;
use cenote_endpoint::Endpoint;

use super::world::{ping, pool};
use crate::world::{block_ping, closed, plain};

/// Until the endpoint has seen so many pings.
async fn seen(endpoint: &Endpoint, pings: u64) {
    while endpoint.with(|server, _| server.statistics()).commands.get("ping") != Some(&pings) {
        tokio::task::yield_now().await;
    }
}

// Reports PgDog#1505: a cancellation that is late ends the command of the next caller.
#[tokio::test]
async fn a_command_that_is_dropped_costs_its_connection() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    block_ping(&endpoint, 60_000);
    let mut connection = pool.check_out().await.unwrap();
    {
        let ping_command = rawdoc! { "ping": 1 };
        let mut command = pin!(connection.command("admin", &ping_command));
        tokio::select! {
            biased;
            reply = command.as_mut() => panic!("{reply:?}"),
            () = seen(&endpoint, 1) => {}
        }
    }
    drop(connection);
    assert_eq!(closed(&events, 0), ["error"], "its reply was never read");
    assert!(ping(&pool).await);
    assert_eq!(pool.snapshot().connections_created, 2);
}

//! A reply whose future was dropped.

use std::time::Duration;

use bson::rawdoc;
use cenote_core::wire::{Flags, Ids, MessageWriter};
use cenote_endpoint::Fault;

use super::world::pool;
use crate::world::{at, plain, set};

/// After a drop the same reply can be received again, wherever it was cut.
#[tokio::test]
async fn giving_up_a_reply_loses_nothing() {
    let endpoint = plain();
    let (pool, _) = pool(&endpoint.uri());
    set(&endpoint, at(Fault::Drip { bytes: 1, every: Duration::from_micros(500) }, "ping"));
    let mut connection = pool.check_out().await.unwrap();
    let (id, limit) = (connection.next_request_id(), connection.message_limit());
    let (mut bytes, ping) = (Vec::new(), rawdoc! { "ping": 1 });
    MessageWriter::command(&mut bytes, Ids::request(id), Flags::NONE, &ping, "admin")
        .unwrap()
        .finish(limit)
        .unwrap();
    connection.send(&bytes).await.unwrap();
    let mut given_up = 0;
    let reply = loop {
        match tokio::time::timeout(Duration::from_millis(1), connection.receive()).await {
            Ok(reply) => break reply.unwrap(),
            Err(_) => given_up += 1,
        }
    };
    assert!(given_up > 0);
    assert_eq!(reply.body().get_f64("ok").ok(), Some(1.0));
    drop(connection);
    assert_eq!(pool.snapshot().available, 1);
}

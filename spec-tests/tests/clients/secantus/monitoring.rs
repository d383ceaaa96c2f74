//! Watching this server: it streams, in its own way.

use std::time::Duration;

use bson::rawdoc;
use cenote_check::EventGuard;
use cenote_core::connect::ServerKind;
use cenote_core::monitor::Event;
use cenote_tokio::Client;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use crate::secantus::server::Server;

// MS-09: every reply of its stream answers the request. It is accepted, so that the server stays
// known and the pool is never cleared (`docs/decisions/0008-what-monitors-accept.md`).
#[tokio::test]
async fn a_stream_that_answers_the_request_goes_on() {
    let server = Server::plain();
    let (sender, mut events) = unbounded_channel();
    let sentry = EventGuard::new();
    let client = Client::builder(&server.uri("heartbeatFrequencyMS=500"))
        .unwrap()
        .on_event(move |told| sentry.hear(&told.event, &told.address))
        .on_heartbeat(move |event| drop(sender.send(event.event.clone())))
        .build()
        .unwrap();
    client.command("admin", &rawdoc! { "ping": 1 }).await.unwrap();
    assert_eq!(client.servers()[0].kind, Some(ServerKind::RsPrimary));
    let mut streamed = 0;
    while streamed < 5 {
        let event = timeout(Duration::from_secs(60), events.recv()).await.expect("heartbeats");
        match event.expect("the client is there") {
            Event::ServerHeartbeatSucceeded { awaited, .. } => streamed += u32::from(awaited),
            Event::ServerHeartbeatFailed { error, .. } => panic!("{error}"),
            Event::ServerHeartbeatStarted { .. } | Event::ServerDescriptionChanged { .. } | _ => {}
        }
    }
    assert_eq!(client.servers()[0].pool.generation, 0);
    client.close().await;
}

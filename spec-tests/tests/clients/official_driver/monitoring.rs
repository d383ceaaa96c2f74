//! Monitors that listen instead of asking.

use cenote_endpoint::{ReplicaSet, Server, Topology};
use mongodb::event::EventHandler;
use mongodb::event::sdam::SdamEvent;
use mongodb::{Client, ServerType};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::official_driver::client::{PATIENCE, options, ping, plain};

/// The streaming monitor reports the step-down; a polling one would ask again in a minute.
#[tokio::test]
async fn a_change_is_told_by_the_stream() {
    let endpoint = plain(Topology::ReplicaSet(ReplicaSet::primary("cenote")));
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut options = options(&endpoint.uri(), &["heartbeatFrequencyMS=60000"]).await;
    options.sdam_event_handler = Some(EventHandler::callback(move |event| {
        // The test may have seen enough.
        drop(tell.send(event));
    }));
    let client = Client::with_options(options).unwrap();
    ping(&client).await.unwrap();
    timeout(PATIENCE, until_kind(&mut told, ServerType::RsPrimary)).await.unwrap();
    endpoint.with(Server::step_down);
    let awaited = timeout(PATIENCE, until_kind(&mut told, ServerType::RsSecondary)).await.unwrap();
    assert!(awaited > 0, "a heartbeat that waited");
}

/// Waits for the server to be that, and counts the awaited heartbeats on the way.
async fn until_kind(told: &mut mpsc::UnboundedReceiver<SdamEvent>, kind: ServerType) -> usize {
    let mut awaited = 0;
    loop {
        let event = told.recv().await.expect("a client that goes on");
        if let SdamEvent::ServerHeartbeatFailed(failed) = &event {
            panic!("a heartbeat failed: {failed:?}");
        }
        if let SdamEvent::ServerHeartbeatSucceeded(heartbeat) = &event {
            awaited += usize::from(heartbeat.awaited);
        }
        if let SdamEvent::ServerDescriptionChanged(changed) = &event {
            if changed.new_description.server_type() == kind {
                return awaited;
            }
        }
    }
}

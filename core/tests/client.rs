//! What a client says: of its servers, and of what it could not do.

#![cfg(feature = "protocol")]

use std::sync::Arc;
use std::time::Duration;

use bson::oid::ObjectId;
use bson::{RawDocument, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::client::{
    ClientError, HeartbeatEvent, SelectionError, Selector, ServerStatus, TopologyEvent, seen,
};
use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::error::{
    CommandError, ConnectionError, OperationError, PoolError, RetryWrites, Stage, label,
};
use cenote_core::monitor::{self, RoundTrip, ServerDescription};
use cenote_core::pool::{CheckOutError, Instant, NoPayload, PoolOptions, PoolState, Snapshot};
use cenote_core::topology::{self, TopologyDescription};

fn address(text: &str) -> Arc<ServerAddress> {
    Arc::new(text.parse().expect("an address"))
}

fn snapshot() -> Snapshot {
    let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {});
    pool.expect("options").snapshot()
}

fn refused(stage: Stage) -> ConnectionError {
    ConnectionError::network(stage, "refused")
}

// ER-20, ER-21, ER-22, BP-01
#[test]
fn labels_come_from_where_it_failed() {
    let none: [&str; 0] = [];
    let selection = ClientError::from(SelectionError::Closed);
    assert_eq!(selection.labels(RetryWrites::Enabled), none);
    assert!(!selection.is_retryable());

    let cleared = CheckOutError::PoolCleared { cause: None };
    let cleared = ClientError::from(PoolError::new(address("db"), cleared));
    assert_eq!(cleared.labels(RetryWrites::Enabled), [label::RETRYABLE_WRITE_ERROR]);
    assert_eq!(cleared.labels(RetryWrites::Disabled), none);
    assert!(cleared.is_retryable());
    let closed = ClientError::from(PoolError::new(address("db"), CheckOutError::PoolClosed));
    assert!(!closed.is_retryable());

    let failed = ClientError::from(OperationError::Connection(refused(Stage::Tcp)));
    let overloaded = [label::SYSTEM_OVERLOADED_ERROR, label::RETRYABLE_ERROR];
    assert_eq!(failed.labels(RetryWrites::Disabled), overloaded);
    assert_eq!(
        failed.labels(RetryWrites::Enabled),
        [&overloaded[..], &[label::RETRYABLE_WRITE_ERROR]].concat()
    );
    assert!(failed.is_retryable());
    let reply = rawdoc! { "ok": 0, "errorLabels": ["TransientTransactionError"] };
    let busy = CommandError::from_reply(&reply).expect("not ok");
    assert!(!ConnectionError::command(Stage::Operation, busy).is_overload());
    let refused = ConnectionError::configuration(Stage::Tcp, "no such file");
    assert!(!ClientError::from(OperationError::Connection(refused)).is_retryable());
}

// BP-01, ER-34: only of what failed on the way to the connection.
#[test]
fn an_error_says_whether_it_means_overload() {
    assert!(refused(Stage::Tcp).is_overload());
    assert!(!refused(Stage::Operation).is_overload());
}

#[test]
fn servers_are_shown_with_what_may_be_done() {
    let mut description = ServerDescription::default();
    description.error = Some(ConnectionError::network(Stage::Tcp, "connection refused"));
    let broken = ServerStatus::new(address("a"), Arc::new(description), snapshot());
    let balancer = Arc::new(ServerDescription::load_balancer());
    let balancer = ServerStatus::new(address("b"), balancer, snapshot());
    let text = broken.to_string();
    let advice = broken.description.error.as_ref().and_then(ConnectionError::advice);
    let shown = format!("connect: connection refused ({})", advice.expect("advice"));
    assert!(text.starts_with("a:27017: ") && text.contains(&shown), "{text}");
    assert!(text.ends_with(&format!(" [{}]", snapshot())), "{text}");
    let both = seen(&TopologyDescription::default(), [broken, balancer]);
    assert!(both.starts_with("Unknown: a:27017: ") && both.contains(&shown));
    assert!(both.ends_with("; b:27017: LoadBalancer"), "{both}");

    let after = Duration::from_secs(3);
    let timed_out = SelectionError::TimedOut { selector: Selector::Any, after, servers: both };
    let text = ClientError::from(timed_out).to_string();
    assert!(text.contains("within 3s: Unknown: a:27017: ") && text.contains(&shown), "{text}");
}

/// Role, set, round trip and tags of each server, wherever servers are shown.
#[test]
fn servers_are_shown_with_all_that_selects_them() {
    let mut reply = rawdoc! {
        "ok": 1, "maxWireVersion": 25, "setName": "rs0", "secondary": true,
        "hosts": ["a:27017"], "tags": { "dc": "ny", "rack": "2\n" },
    };
    let described = |reply: &RawDocument| {
        let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
        let options = EstablishOptions::for_client(&client).for_monitor();
        let hello = ConnectionDescription::from_reply(reply, &options).expect("a reply");
        let average = Duration::from_micros(1_234);
        let round_trip = Some(RoundTrip { average, minimum: Duration::ZERO });
        Arc::new(ServerDescription::known(Arc::new(hello), round_trip, Instant::ORIGIN))
    };
    let status = ServerStatus::new(address("a"), described(&reply), snapshot());
    let shown = "a:27017: RSSecondary of rs0, round trip 1.23ms, tags dc: ny, rack: 2 ";
    assert_eq!(status.to_string(), format!("{shown} [{}]", snapshot()));
    reply.append(bson::cstr!("hidden"), true);
    let hidden = ServerStatus::new(address("b"), described(&reply), snapshot());
    let both = seen(&TopologyDescription::default(), [status, hidden]);
    assert_eq!(
        both,
        format!(
            "Unknown: {shown}; b:27017: RSOther of rs0, round trip 1.23ms, tags dc: ny, rack: 2 "
        )
    );
}

#[test]
fn servers_are_looked_for_in_words() {
    let one = Selector::Address("db".parse().expect("an address"));
    let selectors = [Selector::Any, Selector::Primary, Selector::Secondary, one];
    let words = [
        "server that serves data",
        "primary, router or standalone server",
        "secondary, router or standalone server",
        "server that serves data at db:27017",
    ];
    assert_eq!(selectors.map(|it| it.to_string()), words);
}

/// As the specification's messages; the description of one server, which has none, alike.
#[test]
fn events_are_shown_as_their_messages() {
    let topology_id = ObjectId::from_bytes([7; 12]);
    let id = "070707070707070707070707";
    let shown = |event| TopologyEvent { topology_id, event }.to_string();
    let opening = shown(topology::Event::TopologyOpening);
    assert_eq!(opening, format!("Starting monitoring for topology with ID {id}"));
    let error = ConnectionError::network(Stage::Tcp, "refused");
    let changed = shown(topology::Event::ServerDescriptionChanged {
        address: address("db"),
        previous: Arc::default(),
        new: Arc::new(ServerDescription::unknown(error, None, Instant::ORIGIN)),
    });
    let expected = format!(
        "Description changed for server db:27017 in topology with ID {id}. Previous description: Unknown: not \
         checked yet. New description: Unknown: connect: refused"
    );
    assert_eq!(changed, expected);
    let event = monitor::Event::ServerHeartbeatStarted {
        awaited: false,
        socket: monitor::SocketId(1),
        server_connection_id: None,
    };
    let started = HeartbeatEvent { topology_id, address: address("db"), event }.to_string();
    let expected = format!(
        "Heartbeat started for db:27017 on connection with driver-generated ID 1 in topology with ID {id}. Awaited: \
         false"
    );
    assert_eq!(started, expected);
}

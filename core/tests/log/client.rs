//! The same for the records of topologies and of server selection.

use std::sync::Arc;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::address::ServerAddress;
use cenote_core::client::{ReadPreference, SelectionError, Selector};
use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::log::{Component, LogRecord, LogSettings, Selection, Severity};
use cenote_core::monitor::{self, SocketId};
use cenote_core::topology::{Event, TopologyDescription};
use cenote_core::uri::ReadPreferenceMode;

/// Of a topology, in hexadecimal digits.
const ID: &str = "65f1c0ffee65f1c0ffee65f1";

/// Is given each record.
type Visit<'v> = &'v mut dyn FnMut(&LogRecord<'_>);

/// Those of one type stand together.
pub(super) fn visit_topology(visit: Visit<'_>) {
    for event in [
        Event::TopologyOpening,
        Event::TopologyDescriptionChanged { previous: Arc::default(), new: Arc::default() },
        Event::ServerOpening { address: Arc::new(address()) },
        Event::ServerClosed { address: Arc::new(address()) },
        Event::TopologyClosed,
    ] {
        visit(&LogRecord::of_topology(&event, ID).expect("it has a message"));
    }
}

/// Those of one type stand together.
pub(super) fn visit_heartbeats(visit: Visit<'_>) {
    use monitor::Event;

    let (socket, duration, awaited) = (SocketId(2), Duration::from_micros(1_250), true);
    let error = ConnectionError::network(Stage::Hello, "end of stream");
    let started = |server_connection_id: Option<i64>| Event::ServerHeartbeatStarted {
        awaited: server_connection_id.is_some(),
        socket,
        server_connection_id,
    };
    let server_connection_id = Some(11);
    for event in [
        started(None),
        started(server_connection_id),
        Event::ServerHeartbeatSucceeded { awaited, duration, socket, hello: hello() },
        Event::ServerHeartbeatFailed { awaited, duration, socket, server_connection_id, error },
    ] {
        let (address, settings) = (address(), LogSettings::default());
        let record = LogRecord::of_heartbeat(&event, &address, ID, &settings);
        visit(&record.expect("it has a message"));
    }
}

/// Those of one type stand together.
pub(super) fn visit_selection(visit: Visit<'_>) {
    let (address, settings) = (address(), LogSettings::default());
    let mut preference = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    preference.tag_sets = vec![[("dc".to_owned(), "ny".to_owned())].into()];
    preference.max_staleness = Some(Duration::from_secs(120));
    let tagged = Selector::ReadPreference(preference);
    let find = Selection::new(&tagged, "find").with_operation_id(7).with_topology_id(ID);
    let ping = Selection::new(&Selector::Primary, "ping");
    let topology = TopologyDescription::default();
    let servers = topology.to_string();
    let error = SelectionError::TimedOut {
        selector: Selector::Primary,
        after: Duration::from_secs(30),
        servers,
    };
    let remaining = Some(Duration::from_micros(29_999_900));
    for record in [
        find.started(&topology),
        ping.started(&topology),
        ping.waiting(&topology, remaining),
        ping.waiting(&topology, None),
        ping.succeeded(&topology, &address),
        ping.failed(&topology, error.reason(), &settings),
    ] {
        visit(&record);
    }
}

// LG-51
#[test]
fn all_messages_but_a_wait_are_for_debugging() {
    let mut messages = Vec::new();
    for component in Component::ALL {
        let mut check = |record: &LogRecord<'_>| {
            assert_eq!(record.component(), component);
            let is_wait = record.message().starts_with("Waiting");
            let severity = if is_wait { Severity::Info } else { Severity::Debug };
            assert_eq!(record.severity(), severity);
            messages.push(record.message());
        };
        match component {
            Component::Topology => {
                visit_topology(&mut check);
                visit_heartbeats(&mut check);
            }
            Component::ServerSelection => visit_selection(&mut check),
            Component::Connection | _ => {}
        }
    }
    messages.dedup();
    assert_eq!(messages.len(), 8 + 4, "of all types, together: {messages:?}");
}

/// A description of one server has none: that of the topology, which comes after it, has it.
#[test]
fn a_description_of_a_server_has_no_record() {
    let (previous, new) = (Arc::default(), Arc::default());
    let event = Event::ServerDescriptionChanged {
        address: Arc::new(address()),
        previous: Arc::clone(&previous),
        new: Arc::clone(&new),
    };
    assert!(LogRecord::of_topology(&event, ID).is_none());
    let event = monitor::Event::ServerDescriptionChanged { previous, new };
    let (address, settings) = (address(), LogSettings::default());
    assert!(LogRecord::of_heartbeat(&event, &address, ID, &settings).is_none());
}

// LG-48: the texts of servers.
#[test]
fn replies_and_failures_are_cut() {
    let (address, settings) = (address(), LogSettings::default().with_max_document_length(4));
    let (socket, duration, awaited) = (SocketId(1), Duration::ZERO, false);
    let error = ConnectionError::network(Stage::Hello, "end of stream");
    let field = |event: monitor::Event, key| {
        let record = LogRecord::of_heartbeat(&event, &address, ID, &settings);
        record.expect("a record").field(key).map(ToString::to_string)
    };
    let succeeded =
        monitor::Event::ServerHeartbeatSucceeded { awaited, duration, socket, hello: hello() };
    assert_eq!(field(succeeded, "reply").as_deref(), Some("{\"ok..."));
    let failed = monitor::Event::ServerHeartbeatFailed {
        awaited,
        duration,
        socket,
        server_connection_id: None,
        error,
    };
    assert_eq!(field(failed, "failure").as_deref(), Some("hell..."));
    let selection = Selection::new(&Selector::Any, "ping");
    let record = selection.failed(&TopologyDescription::default(), "too long", &settings);
    assert_eq!(record.field("failure").map(ToString::to_string).as_deref(), Some("too ..."));
}

/// The other fields of the record have the selector and the servers.
#[test]
fn the_reason_of_a_failed_selection_repeats_nothing() {
    let selector = || Selector::Address(address());
    let servers = || "db1.example.com:27017: Unknown".to_owned();
    for error in [
        SelectionError::TimedOut {
            selector: selector(),
            after: Duration::ZERO,
            servers: servers(),
        },
        SelectionError::Incompatible { selector: selector(), servers: servers() },
        SelectionError::NotOfThisClient { address: address() },
        SelectionError::Closed,
    ] {
        let reason = error.reason();
        assert!(!reason.is_empty() && !reason.contains("db1"), "{reason}");
    }
}

fn address() -> ServerAddress {
    "db1.example.com".parse().expect("an address")
}

fn hello() -> Arc<ConnectionDescription> {
    let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
    let options = EstablishOptions::for_client(&client).for_monitor();
    let reply = rawdoc! { "ok": 1, "maxWireVersion": 25, "connectionId": 11 };
    Arc::new(ConnectionDescription::from_reply(&reply, &options).expect("a reply"))
}

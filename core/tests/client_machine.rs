//! Inputs that a client refuses, and what callers that wait for a server are told.

#![cfg(feature = "protocol")]

use std::sync::Arc;
use std::time::Duration;

use cenote_core::client::machine::{
    Action, ClientOptions, ClientState, Input, MisuseReason, Request, SelectionId,
};
use cenote_core::client::{ClientSettings, SelectionError, Selector, SrvPolling};
use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{MonitorOptions, SocketId};
use cenote_core::pool::Instant;
use cenote_core::topology::{ServerId, TopologyOptions};
use cenote_core::uri::ConnectionString;
use cenote_core::uri::srv::{LookupError, SrvAnswers, SrvRecord};

type Actions = Vec<Action<&'static str>>;

fn client(uri: &str) -> (ClientState<&'static str>, Actions) {
    let uri = ConnectionString::parse(uri).expect("a connection string");
    let srv = Ok(vec![SrvRecord::new("a.example.com.", 27017)]);
    let answers = SrvAnswers { srv, txt: Ok(Vec::new()) };
    let uri = if uri.hosts.is_empty() { uri.resolve(&answers, || 0).expect("hosts") } else { uri };
    let metadata = ClientMetadata::new(None, &Environment::default()).expect("short enough");
    let options = ClientOptions {
        topology: TopologyOptions::new(&uri),
        settings: ClientSettings::new(&uri),
        monitoring: MonitorOptions::new(&uri, false),
        establish: Arc::new(EstablishOptions::for_client(&metadata).for_monitor()),
        polling: SrvPolling::new(
            Instant::ORIGIN,
            &uri,
            answers.ttl(),
            SrvPolling::SHORTEST_INTERVAL,
        ),
    };
    let mut actions = Vec::new();
    let client = ClientState::new(Instant::ORIGIN, options, &mut actions);
    (client.expect("good options"), actions)
}

fn request(id: u64, deadline: Option<u64>) -> Input<&'static str> {
    let deadline = deadline.map(|after| Instant::ORIGIN + Duration::from_secs(after));
    let (waiter, selector, avoided) = ("caller", Selector::Primary, Vec::new());
    let id = SelectionId(id);
    Input::SelectServer(Request { id, waiter, selector, avoided, deadline, draw: 0 })
}

/// Why callers got no server.
fn refused(actions: Actions) -> Vec<SelectionError> {
    let delivered = actions.into_iter().filter_map(|action| {
        let Action::Deliver { outcome, .. } = action else { return None };
        outcome.err()
    });
    delivered.collect()
}

#[test]
fn what_makes_no_sense_is_given_back() {
    let (mut client, mut out) = client("mongodb://a,b/?replicaSet=rs");
    let error = ConnectionError::network(Stage::Tcp, "refused");
    let failed = |server, socket| Input::SocketFailed {
        server: ServerId(server),
        socket: SocketId(socket),
        error: error.clone(),
    };
    client.handle(Instant::ORIGIN, request(2, None), &mut out).expect("the first");
    for input in [
        failed(0, 1),
        failed(3, 1),
        failed(1, 2),
        request(2, None),
        Input::LookedUp { records: Err(LookupError::NotFound), draw: 0 },
    ] {
        let name = input.name();
        let before = (out.len(), client.next_deadline());
        let misuse = client.handle(Instant::ORIGIN, input, &mut out).expect_err(name);
        assert_eq!((misuse.input.name(), (out.len(), client.next_deadline())), (name, before));
        let is_of_server =
            matches!(misuse.reason, MisuseReason::UnknownServer(_) | MisuseReason::Socket(_));
        assert_eq!(is_of_server, name == "SocketFailed", "{misuse}");
    }
    // Of a server that was removed: ignored.
    client.handle(Instant::ORIGIN, Input::Close, &mut out).expect("at any time");
    client.handle(Instant::ORIGIN, failed(1, 1), &mut out).expect("it was there");
}

// SS-13
#[test]
fn a_caller_waits_until_its_deadline_or_the_close() {
    let (mut client, _) = client("mongodb://a/?replicaSet=rs");
    let mut out = Vec::new();
    for (id, deadline) in [(1, Some(3)), (2, None), (3, Some(1))] {
        client.handle(Instant::ORIGIN, request(id, deadline), &mut out).expect("in order");
    }
    assert!(refused(std::mem::take(&mut out)).is_empty());
    assert_eq!(client.waiting(), 3);
    let second = Instant::ORIGIN + Duration::from_secs(1);
    assert_eq!(client.next_deadline(), Some(second));
    client.handle(second, Input::Timer, &mut out).expect("at any time");
    let [SelectionError::TimedOut { after, servers, .. }] = &refused(std::mem::take(&mut out))[..]
    else {
        panic!("one caller")
    };
    assert_eq!(*after, Duration::from_secs(1));
    assert!(servers.contains("a:27017: Unknown"), "{servers}");
    client
        .handle(second, Input::CancelSelection { id: SelectionId(1) }, &mut out)
        .expect("it waits");
    client.handle(second, Input::Close, &mut out).expect("at any time");
    assert!(matches!(refused(out)[..], [SelectionError::Closed]));
    assert_eq!((client.waiting(), client.next_deadline()), (0, None));
    let mut out = Vec::new();
    client.handle(second, request(4, None), &mut out).expect("in order");
    assert!(matches!(refused(out)[..], [SelectionError::Closed]));
}

// SV-12
#[test]
fn records_that_come_after_the_close_change_nothing() {
    let (mut client, _) = client("mongodb+srv://shop.example.com/");
    let (mut out, minute) = (Vec::new(), Instant::ORIGIN + SrvPolling::SHORTEST_INTERVAL);
    client.handle(minute, Input::Timer, &mut out).expect("at any time");
    assert!(out.iter().any(|action| matches!(action, Action::LookUp { .. })), "{out:?}");
    client.handle(minute, Input::Close, &mut out).expect("at any time");
    out.clear();
    let records = Ok(vec![SrvRecord::new("b.example.com.", 27017)]);
    client.handle(minute, Input::LookedUp { records, draw: 0 }, &mut out).expect("it was asked");
    assert!(out.is_empty(), "{out:?}");
}

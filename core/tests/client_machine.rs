//! Inputs that a client refuses, and what callers that wait for a server are told.

#![cfg(feature = "protocol")]

use std::sync::Arc;
use std::time::Duration;

use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::client::machine::{
    Action, ClientOptions, ClientState, Event, Input, MisuseReason, PoolChange, Request,
    SelectionId,
};
use cenote_core::client::{ClientSettings, SelectionError, Selector, SrvPolling};
use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_core::monitor::{MonitorOptions, SocketId};
use cenote_core::pool::Instant;
use cenote_core::topology::{ServerId, TopologyOptions};
use cenote_core::trace::topology::{Replay, StepInput};
use cenote_core::trace::{Disclosure, TraceInfo};
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
    let (waiter, selector) = ("caller", Selector::Primary);
    let id = SelectionId(id);
    Input::SelectServer(Request { id, waiter, selector, deadline, draw: 0 })
}

/// A member of a set, which streams.
fn member(is_primary: bool, hosts: &[&str]) -> RawDocumentBuf {
    let version = rawdoc! { "processId": ObjectId::from_bytes([1; 12]), "counter": 1_i64 };
    let hosts = RawArrayBuf::from_iter(hosts.iter().copied());
    rawdoc! {
        "ok": 1, "helloOk": true, "isWritablePrimary": is_primary, "secondary": !is_primary,
        "setName": "rs", "hosts": hosts, "topologyVersion": version, "maxWireVersion": 25,
    }
}

fn primary() -> RawDocumentBuf {
    member(true, &["a:27017"])
}

fn opened(server: u64, reply: &RawDocumentBuf) -> Input<&'static str> {
    let metadata = ClientMetadata::new(None, &Environment::default()).expect("short enough");
    let options = EstablishOptions::for_client(&metadata).for_monitor();
    let hello = Box::new(ConnectionDescription::from_reply(reply, &options).expect("a hello"));
    let (server, socket) = (ServerId(server), SocketId(1));
    Input::SocketOpened { server, socket, hello, round_trip: Duration::from_millis(1) }
}

fn failed(error: ConnectionError, is_current: bool) -> Input<&'static str> {
    Input::ConnectionFailed { server: ServerId(1), error, is_current, service: None }
}

/// The name of an action, and whom it is for.
fn shown(action: &Action<&'static str>) -> String {
    match action {
        Action::OpenPool { server, .. } => format!("OpenPool {}", server.0),
        Action::FeedPool { server, change, .. } => {
            let change = match change {
                PoolChange::Ready => "Ready",
                PoolChange::Clear { .. } => "Clear",
                PoolChange::MinRoundTrip(_) => "MinRoundTrip",
            };
            format!("{change} {}", server.0)
        }
        Action::ClosePool { server, .. } => format!("ClosePool {}", server.0),
        Action::OpenSocket { server, .. } => format!("OpenSocket {}", server.0),
        Action::Send { server, .. } => format!("Send {}", server.0),
        Action::CloseSocket { server, .. } => format!("CloseSocket {}", server.0),
        Action::LookUp { .. } => "LookUp".to_owned(),
        Action::Deliver { waiter, .. } => format!("Deliver {waiter}"),
        Action::EmitEvent(Event::Heartbeat { event, .. }) => event.name().to_owned(),
        Action::EmitEvent(Event::Topology(event)) => event.name().to_owned(),
        Action::EmitEvent(Event::ToTopology(_)) => "ToTopology".to_owned(),
        Action::ReportRecords(_) => "ReportRecords".to_owned(),
    }
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
fn what_has_an_effect_changes_the_fingerprint() {
    let uri = "mongodb://a/?replicaSet=rs";
    let ([mut one, mut other], mut out) = ([client(uri).0, client(uri).0], Vec::new());
    let mut seen = vec![one.fingerprint()];
    let inputs = || {
        let cancel = Input::CancelSelection { id: SelectionId(1) };
        let lost = failed(ConnectionError::network(Stage::Operation, "reset"), true);
        [request(1, None), cancel, request(2, Some(9)), opened(1, &primary()), lost, Input::Close]
    };
    for (input, again) in inputs().into_iter().zip(inputs()) {
        one.handle(Instant::ORIGIN, input, &mut out).expect("in order");
        other.handle(Instant::ORIGIN, again, &mut out).expect("in order");
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert!(!seen.contains(&one.fingerprint()));
        seen.push(one.fingerprint());
    }
    let (fresh, _) = client(uri);
    let snapshot = fresh.snapshot();
    assert_eq!((snapshot.servers, snapshot.known, snapshot.is_closed), (1, 0, false));
    assert!(one.snapshot().is_closed);
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
        let before = (out.len(), client.fingerprint());
        let misuse = client.handle(Instant::ORIGIN, input, &mut out).expect_err(name);
        assert_eq!((misuse.input.name(), (out.len(), client.fingerprint())), (name, before));
        let is_of_server =
            matches!(misuse.reason, MisuseReason::UnknownServer(_) | MisuseReason::Socket(_));
        assert_eq!(is_of_server, name == "SocketFailed", "{misuse}");
    }
    // Of a server that was removed: ignored.
    client.handle(Instant::ORIGIN, Input::Close, &mut out).expect("at any time");
    client.handle(Instant::ORIGIN, failed(1, 1), &mut out).expect("it was there");
}

/// One that is answered at once is not. Addresses are told as the trace has them.
#[test]
fn requests_that_wait_are_recorded() {
    let (client, mut out) = client("mongodb://a/?replicaSet=rs");
    let mut client = client.map_recorder(|it| it.with_flight_recorder(Instant::ORIGIN, 1 << 20));
    let after = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
    let named = Selector::Address("a:27017".parse().expect("an address"));
    for (id, deadline, selector) in [
        (1, None, Selector::Primary),
        (2, Some(after(1)), Selector::Secondary),
        (3, None, Selector::Any.avoiding(["b:27017".parse().expect("an address")])),
        (4, None, named.clone()),
    ] {
        let id = SelectionId(id);
        let request = Request { id, waiter: "caller", selector, deadline, draw: 0 };
        client.handle(Instant::ORIGIN, Input::SelectServer(request), &mut out).expect("new");
    }
    client.handle(after(1), Input::CancelSelection { id: SelectionId(3) }, &mut out).expect("it");
    client.handle(after(1), Input::Timer, &mut out).expect("at any time");
    client.handle(after(2), opened(1, &primary()), &mut out).expect("its socket");
    client.handle(after(2), request(5, None), &mut out).expect("new");
    let recording = client.recorder().flight_recording().expect("it is recorded");
    let told = |addresses| {
        let info = TraceInfo::default().with_addresses(addresses);
        let trace = recording.write_to(&info, Vec::new()).expect("memory");
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let mut told = Vec::new();
        while let Some(step) = replay.step(&mut |_| {}).expect("it goes the way it went") {
            if let StepInput::Selection(selection) = step.input {
                told.push(format!("{}: {selection}", step.at));
            }
        }
        told
    };
    let expected = [
        "1.000000000s: request 3 for any server waited 1s and failed: the caller gave up",
        "1.000000000s: request 2 for a secondary waited 1s and failed: there was none within 1s",
        "2.000000000s: request 1 for the primary waited 2s for a:27017",
        "2.000000000s: request 4 for one server waited 2s for a:27017",
    ];
    assert_eq!(told(Disclosure::Plain), expected);
    let hidden = told(Disclosure::Omitted);
    assert_eq!(hidden[..2], expected[..2]);
    assert_eq!(hidden[2], expected[2].replace("a:27017", "#1"));
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
    assert!(
        servers.ends_with(": not checked yet, connecting for 1s without an answer"),
        "{servers}"
    );
    // It is asked too early, and then before the timer.
    let third = Instant::ORIGIN + Duration::from_secs(3);
    for (now, expected) in [(second, 0), (third, 1)] {
        let timed_out = Input::SelectionTimedOut { id: SelectionId(1) };
        client.handle(now, timed_out, &mut out).expect("at any time");
        assert_eq!(refused(std::mem::take(&mut out)).len(), expected);
    }
    let second = third;
    client.handle(second, Input::Close, &mut out).expect("at any time");
    assert!(matches!(refused(out)[..], [SelectionError::Closed]));
    assert_eq!((client.waiting(), client.next_deadline()), (0, None));
    let mut out = Vec::new();
    client.handle(second, request(4, None), &mut out).expect("in order");
    assert!(matches!(refused(out)[..], [SelectionError::Closed]));
}

/// It has answered wrongly on a connection of the pool, but the check that is under way never ends: that is no answer.
// SS-15
#[test]
fn a_check_that_is_overdue_ends_before_a_caller_gives_up() {
    let (mut client, mut out) = client("mongodb://a/?replicaSet=rs&connectTimeoutMS=100");
    client.handle(Instant::ORIGIN, opened(1, &primary()), &mut out).expect("it is being opened");
    assert!(out.iter().any(|action| matches!(action, Action::Send { .. })), "it streams");
    let error = ConnectionError::protocol(Stage::Hello, "another wire version");
    client.handle(Instant::ORIGIN, failed(error, true), &mut out).expect("of a server");
    let mut out = Vec::new();
    let minute = Instant::ORIGIN + Duration::from_secs(60);
    client.handle(minute, request(1, None), &mut out).expect("the first");
    assert!(refused(out).is_empty());
    let known = client.description().servers().next().expect("a server").1.to_string();
    assert!(known.contains("timed out"), "{known}");
}

// SD-07
#[test]
fn servers_are_numbered_in_the_order_of_the_connection_string() {
    let (client, _) = client("mongodb://b:1,a:1,B:1,a:2,a:1");
    let servers = client.servers().map(|(ServerId(id), address)| format!("{id} {address}"));
    assert_eq!(servers.collect::<Vec<_>>(), ["1 b:1", "2 a:1", "3 a:2"]);
}

/// First callers hear of it, then the monitors end, then the pools.
// SD-10
#[test]
fn a_client_is_closed_in_order() {
    let (mut client, mut out) = client("mongodb://b,a");
    client.handle(Instant::ORIGIN, request(1, None), &mut out).expect("the first");
    out.clear();
    client.handle(Instant::ORIGIN, Input::Close, &mut out).expect("at any time");
    let order = ["Deliver caller", "CloseSocket 1", "CloseSocket 2", "ClosePool 1", "ClosePool 2"];
    let actions: Vec<_> = out.iter().map(shown).collect();
    assert_eq!(actions[..5], order);
}

/// The description first, then the pool, then the socket; a caller gets its server at last.
// CS-14, SD-04, SE-02
#[test]
fn what_follows_from_an_answer_has_an_order() {
    let (mut client, mut out) = client("mongodb://a/?replicaSet=rs");
    client.handle(Instant::ORIGIN, request(1, None), &mut out).expect("the first");
    let cancelled = Input::SelectServer(Request {
        id: SelectionId(2),
        waiter: "cancelled",
        selector: Selector::Any,
        deadline: None,
        draw: 0,
    });
    client.handle(Instant::ORIGIN, cancelled, &mut out).expect("in order");
    let cancel = Input::CancelSelection { id: SelectionId(2) };
    client.handle(Instant::ORIGIN, cancel, &mut out).expect("it waits");
    out.clear();
    client.handle(Instant::ORIGIN, opened(1, &primary()), &mut out).expect("it is being opened");
    let shown: Vec<_> = out.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            "ServerHeartbeatSucceeded",
            "ToTopology",
            "ServerDescriptionChanged",
            "TopologyDescriptionChanged",
            "ServerHeartbeatStarted",
            "Ready 1",
            "MinRoundTrip 1",
            "OpenSocket 1",
            "Send 1",
            "Deliver caller",
        ]
    );
}

/// An error of an older process or generation says nothing of the server.
// SD-20, SD-21, SD-24
#[test]
fn a_failed_connection_is_judged_by_what_is_known() {
    let refused = |counter: i64| {
        let version = rawdoc! { "processId": ObjectId::from_bytes([1; 12]), "counter": counter };
        let reply = rawdoc! {
            "ok": 0, "code": 11600, "errmsg": "shutdown", "topologyVersion": version,
        };
        ConnectionError::command(
            Stage::Operation,
            CommandError::from_reply(&reply).expect("an error"),
        )
    };
    let lost = || ConnectionError::network(Stage::Operation, "reset");
    for (error, is_current, clears) in [
        (refused(0), true, false),
        (refused(2), true, true),
        (lost(), false, false),
        (lost(), true, true),
    ] {
        let (mut client, mut out) = client("mongodb://a/?replicaSet=rs");
        client.handle(Instant::ORIGIN, opened(1, &primary()), &mut out).expect("being opened");
        out.clear();
        let shown_error = error.to_string();
        client.handle(Instant::ORIGIN, failed(error, is_current), &mut out).expect("of a server");
        let is_known = client.description().servers().all(|(_, server)| server.kind().is_some());
        assert_eq!(is_known, !clears, "{shown_error}, {is_current}");
        let is_cleared = out.iter().any(|action| shown(action) == "Clear 1");
        assert_eq!(is_cleared, clears, "{shown_error}, {is_current}");
    }
}

/// A standalone server among several hosts leaves the topology. Nothing is fed to its pool, and what comes of it later is
/// ignored.
// SD-05, ST-10
#[test]
fn a_server_that_is_removed_is_closed_in_order() {
    let (mut client, mut out) = client("mongodb://a,b");
    out.clear();
    let standalone =
        rawdoc! { "ok": 1, "helloOk": true, "isWritablePrimary": true, "maxWireVersion": 25 };
    client.handle(Instant::ORIGIN, opened(1, &standalone), &mut out).expect("being opened");
    let actions = out.iter().map(shown).filter(|it| it.ends_with(" 1"));
    assert_eq!(actions.collect::<Vec<_>>(), ["MinRoundTrip 1", "CloseSocket 1", "ClosePool 1"]);
    out.clear();
    let error = ConnectionError::network(Stage::Operation, "reset");
    client.handle(Instant::ORIGIN, failed(error, true), &mut out).expect("it was there");
    assert!(out.is_empty(), "{out:?}");
}

/// The standalone server becomes a member, while a caller waits and no other server is known.
#[test]
fn a_host_that_was_excluded_is_asked_again() {
    let (mut client, mut out) = client("mongodb://a/?replicaSet=rs");
    let standalone =
        rawdoc! { "ok": 1, "helloOk": true, "isWritablePrimary": true, "maxWireVersion": 25 };
    let begin = Instant::ORIGIN + Duration::from_secs(7);
    client.handle(begin, opened(1, &standalone), &mut out).expect("being opened");
    assert_eq!(client.next_deadline(), None);
    out.clear();
    client.handle(begin, request(1, Some(30)), &mut out).expect("the first");
    let due = client.next_deadline().expect("a caller waits");
    assert_eq!(due, begin + Duration::from_millis(500));
    client.handle(due, Input::Timer, &mut out).expect("it is due");
    assert!(out.iter().any(|action| shown(action) == "OpenSocket 2"), "{out:?}");
    client.handle(due, opened(2, &primary()), &mut out).expect("being opened");
    assert_eq!(out.iter().map(shown).filter(|it| it == "Deliver caller").count(), 1);
}

/// Members that name others in turn do not have any number of hosts contacted.
// SM-05
#[test]
fn of_many_new_servers_some_are_asked_later() {
    let (mut client, mut out) = client("mongodb://a/?replicaSet=rs");
    let hosts: Vec<_> = (0..60).map(|number| format!("m{number}:27017")).collect();
    let hosts: Vec<_> = ["a:27017"].into_iter().chain(hosts.iter().map(String::as_str)).collect();
    out.clear();
    client.handle(Instant::ORIGIN, opened(1, &member(true, &hosts)), &mut out).expect("it is");
    let opened = |out: &Actions| {
        out.iter()
            .filter(|it| matches!(it, Action::OpenSocket { server, .. } if server.0 > 1))
            .count()
    };
    assert_eq!(opened(&out), 50);
    out.clear();
    let later = Instant::ORIGIN + Duration::from_millis(500);
    client.handle(later, Input::Timer, &mut out).expect("it is due");
    assert_eq!(opened(&out), 10);
}

/// Two names of one member, which knows neither of them: each removes itself and adds the other.
// SM-05
#[test]
fn names_that_bring_each_other_back_are_asked_after_a_pause() {
    let (mut client, mut out) = client("mongodb://a/?replicaSet=rs");
    let mut reply = member(false, &["a:27017", "b:27017"]);
    reply.append(cstr!("me"), "c:27017");
    out.clear();
    for server in 1..=2 {
        client.handle(Instant::ORIGIN, opened(server, &reply), &mut out).expect("being opened");
    }
    let shown: Vec<_> = out.iter().map(shown).collect();
    assert!(shown.contains(&"OpenPool 3".to_owned()), "a is back: {shown:?}");
    assert!(!shown.contains(&"OpenSocket 3".to_owned()), "{shown:?}");
    let due = client.next_deadline().expect("a is asked again");
    assert_eq!(due, Instant::ORIGIN + Duration::from_millis(500));
}

/// A server that may be replaced by a newer one ends no selection, until all are such.
// SS-13, ST-13
#[test]
fn servers_of_other_wire_versions_end_a_selection_together() {
    let (mut client, mut out) = client("mongodb://a,b/?replicaSet=rs");
    client.handle(Instant::ORIGIN, request(1, Some(30)), &mut out).expect("the first");
    let metadata = ClientMetadata::new(None, &Environment::default()).expect("short enough");
    let options = EstablishOptions::for_client(&metadata).for_monitor();
    let newer = rawdoc! { "ok": 1, "helloOk": true, "minWireVersion": 999, "maxWireVersion": 999 };
    let hello = ConnectionDescription::from_reply(&newer, &options).expect("a hello");
    let error = hello.check_wire_versions(&"a".parse().expect("a host")).expect_err("it is newer");
    let mut told = Vec::new();
    for server in [ServerId(1), ServerId(2)] {
        let (socket, error) = (SocketId(1), error.clone());
        let input = Input::SocketFailed { server, socket, error };
        client.handle(Instant::ORIGIN, input, &mut out).expect("it was asked for");
        told.push(refused(std::mem::take(&mut out)).len());
    }
    assert_eq!((told, client.waiting()), (vec![0, 1], 0));
}

/// The server where the operation has just failed is taken if there is no other.
// SS-16
#[test]
fn avoided_servers_come_last() {
    let (mut client, mut out) = client("mongodb://a,b/?replicaSet=rs");
    let hosts = ["a:27017", "b:27017"];
    let first: ServerAddress = "a:27017".parse().expect("an address");
    let other = Selector::Any.avoiding([first]);
    client
        .handle(Instant::ORIGIN, opened(1, &member(true, &hosts)), &mut out)
        .expect("being opened");
    let chosen = |client: &ClientState<_>| {
        client.select(&other, 0).expect("one fits").expect("no error").first
    };
    assert_eq!(chosen(&client), ServerId(1));
    client
        .handle(Instant::ORIGIN, opened(2, &member(false, &hosts)), &mut out)
        .expect("being opened");
    assert_eq!(chosen(&client), ServerId(2));
}

// LB-08
#[test]
fn the_pool_of_a_load_balancer_is_ready_at_once() {
    let (client, out) = client("mongodb://a/?loadBalanced=true");
    let is_ready = |it: &Action<_>| matches!(it, Action::OpenPool { is_ready: true, .. });
    assert!(out.iter().any(is_ready), "{out:?}");
    assert_eq!(client.next_deadline(), None);
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

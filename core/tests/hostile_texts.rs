//! Texts that come from outside, wherever they are shown: one line of bounded length, without
//! characters that a terminal obeys or that are invisible.

#![cfg(feature = "protocol")]

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocumentBuf, doc, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::client::{SelectionError, Selector, ServerStatus, seen};
use cenote_core::connect::{
    ClientMetadata, ConnectionDescription, Environment, Establish, EstablishOptions, Nonce,
    ScramCache, Step,
};
use cenote_core::error::{CommandError, ConnectionError, OneLine, PoolError, Stage};
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::monitor::{Event as Heartbeat, ServerDescription, SocketId};
use cenote_core::pool::{
    Action, CheckOutError, Event, Instant, NoPayload, PoolOptions, PoolState, Snapshot, WaiterId,
};
use cenote_core::topology::{
    Action as TopologyAction, Event as Changed, Input, Topology, TopologyDescription,
    TopologyOptions,
};
use cenote_core::trace::{Cause, Replay};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::WireError;

/// An escape sequence, a new line, an override of the direction, a script, and too much.
fn hostile() -> [String; 6] {
    [
        "\u{1b}[2J\u{1b}[31mred\u{9b}1m".to_owned(),
        "one\r\n2026-11-22 ERROR two\u{2028}three\u{85}four".to_owned(),
        "\u{202e}sdrawkcab\u{2066}\u{200f}\u{61c}\u{200b}\u{feff}".to_owned(),
        "\0\t\u{7f}\u{8}".to_owned(),
        "x".repeat(1 << 20),
        "\u{202e}".repeat(1 << 18),
    ]
}

/// Several texts may be shown together.
const LONGEST: usize = 8 * OneLine::TEXT_MAX;

#[track_caller]
fn check(what: &str, shown: &str) {
    let is_bad = |it: char| {
        it.is_control()
            || matches!(
                it,
                '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}'
                    | '\u{61c}' | '\u{feff}'
            )
    };
    if let Some(bad) = shown.chars().find(|&it| is_bad(it)) {
        panic!("{what} shows {bad:?}: {}", shown.escape_debug());
    }
    let count = shown.chars().count();
    assert!(count <= LONGEST, "{what} shows {count} characters");
}

#[track_caller]
fn check_both(what: &str, value: &(impl Display + Debug)) {
    check(what, &value.to_string());
    check(what, &format!("{value:?}"));
}

#[test]
fn replies_of_servers() {
    for text in hostile() {
        let refusal = rawdoc! {
            "ok": 0, "errmsg": text.as_str(), "codeName": text.as_str(), "code": 1,
            "errorLabels": [text.as_str(), "another", text.as_str()],
        };
        let refusal = CommandError::from_reply(&refusal).expect("a refusal");
        check_both("a refusal", &refusal);
        check_both("its connection's error", &ConnectionError::command(Stage::Hello, refusal));
        let concern = rawdoc! {
            "ok": 1, "writeConcernError": { "errmsg": text.as_str(), "codeName": text.as_str() },
        };
        check_both("a write concern", &CommandError::from_reply(&concern).expect("an error"));

        let hello = rawdoc! {
            "ok": 1, "setName": text.as_str(), "secondary": true, "me": text.as_str(),
            "primary": text.as_str(), "hosts": [text.as_str()], "maxWireVersion": 25,
        };
        let hello = Arc::new(described(&hello));
        check("a connection", &format!("{hello:?}"));
        let mut description = ServerDescription::default();
        description.hello = Some(Arc::clone(&hello));
        check_both("a server", &description);
        let address: Arc<ServerAddress> = Arc::new("db:1".parse().expect("an address"));
        let description = Arc::new(description);
        let status =
            || ServerStatus::new(Arc::clone(&address), Arc::clone(&description), snapshot());
        check_both("a client's server", &status());
        let servers = seen(&TopologyDescription::default(), [status()]);
        let selection = SelectionError::TimedOut {
            selector: Selector::Primary,
            after: Duration::ZERO,
            servers,
        };
        check_both("a selection", &selection);
        let settings = LogSettings::default();
        let heartbeat = Heartbeat::ServerHeartbeatSucceeded {
            awaited: false,
            duration: Duration::ZERO,
            socket: SocketId(1),
            hello,
        };
        check("a heartbeat", &format!("{heartbeat:?}"));
        let record = LogRecord::of_heartbeat(&heartbeat, &address, "7", &settings);
        check_both("its record", &record.expect("it has one"));
        let topology = of_one(description);
        check_both("a topology", &*topology);
        let changed =
            Changed::TopologyDescriptionChanged { previous: Arc::clone(&topology), new: topology };
        check("its event", &format!("{changed:?}"));
        check_both("its record", &LogRecord::of_topology(&changed, "7").expect("it has one"));
    }
}

/// A topology that has such a server.
fn of_one(description: Arc<ServerDescription>) -> Arc<TopologyDescription> {
    let uri = ConnectionString::parse("mongodb://db:1").expect("a connection string");
    let mut added = None;
    let mut topology = Topology::new(TopologyOptions::new(&uri), &mut |action| {
        if let TopologyAction::AddServer { id, .. } = action {
            added = Some(id);
        }
    });
    let id = added.expect("the server of the connection string");
    topology.handle(Input::Described { id, description }, &mut |_| {});
    Arc::clone(topology.description())
}

fn snapshot() -> Snapshot {
    let mut actions = Vec::<Action<NoPayload>>::new();
    let pool = PoolState::new(Instant::ORIGIN, PoolOptions::default(), &mut actions);
    pool.expect("good options").snapshot()
}

#[test]
fn errors_and_events() {
    for text in hostile() {
        let io = || std::io::Error::other(text.clone());
        for error in [
            ConnectionError::network(Stage::Dns, io()),
            ConnectionError::network(Stage::Proxy, text.as_str()),
            ConnectionError::certificate(io()),
            ConnectionError::protocol(Stage::Hello, &text),
            ConnectionError::configuration(Stage::Tcp, &text),
        ] {
            check_both("an error", &error);
            let cause = CheckOutError::EstablishFailed { cause: error.clone() };
            let address: ServerAddress = "db:1".parse().expect("an address");
            check_both("a check-out", &PoolError::new(Arc::new(address.clone()), cause.clone()));
            let (request, duration) = (WaiterId(1), Duration::ZERO.into());
            let failed = Event::ConnectionCheckOutFailed { request, error: cause, duration };
            check("an event", &format!("{failed:?}"));
            let settings = LogSettings::default();
            check_both("a log record", &LogRecord::new(&failed, &address, &settings));
        }
        let identifier = OneLine::name(&text).to_string();
        check_both("a wire error", &WireError::DuplicateSequence { identifier });
        let cause = Cause { text: Some(text.as_str().into()), ..Cause::default() };
        check_both("a recorded cause", &cause);
    }
}

#[test]
fn addresses_and_connection_strings() {
    for text in hostile() {
        let error = ServerAddress::tcp(&text, 1).expect_err("no host is named so");
        check_both("an address", &error);
        let error = ServerAddress::unix(&format!("/{text}.sock")).expect_err("nor is a socket");
        check_both("a socket", &error);
        let uri = format!("mongodb://db/?{}=1", text.escape_default());
        let uri = ConnectionString::parse(&uri).expect("an unknown option is a warning");
        uri.warnings().iter().for_each(|warning| check("a warning", &warning.to_string()));
    }
}

#[test]
fn headers_of_traces() {
    for text in hostile() {
        // A document of a trace has a limit.
        let text: String = text.chars().take(100_000).collect();
        let header = doc! {
            "format": "cenote-trace", "version": 1_i64, "address": &text, "program": &text,
            "origin": bson::DateTime::from_millis(0), "t": 0_i64, "options": {}, "actions": false,
        };
        let header = header.to_vec().expect("a document");
        let replay = Replay::new(&*header).expect("a header");
        let header = replay.header();
        check("an address", header.address.as_deref().expect("it is there"));
        check("a program", header.program.as_deref().expect("it is there"));
        check("a header", &format!("{header:?}"));

        let unknown = doc! { text.replace('\0', ""): 1 }.to_vec();
        let unknown = unknown.expect("a document");
        check_both("a problem", &Replay::new(&*unknown).map(drop).expect_err("no trace"));
    }
}

/// What a connection learns from this reply.
fn described(hello: &RawDocumentBuf) -> ConnectionDescription {
    let uri = ConnectionString::parse("mongodb://db").expect("a URI");
    let client = ClientMetadata::new(None, &Environment::default()).expect("no name");
    let nonces = ["a", "b"].map(|text| Nonce::from_text(text).expect("a nonce"));
    let options = EstablishOptions::new(&uri, &client);
    let mut establish = Establish::new(Arc::new(options), nonces).expect("no login");
    loop {
        match establish.next_step().expect("no error") {
            Step::Receive => establish.reply(hello, &mut ScramCache::default()),
            Step::Done(server) => return *server,
            Step::Send(_) | Step::Handshaken(_) | Step::Derive(_) | Step::Token { .. } => {}
        }
    }
}

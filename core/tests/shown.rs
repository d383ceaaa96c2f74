//! What is printed during debugging says at least what it is. That it shows no
//! secret is for `connect/secrecy.rs` to say.

#![cfg(feature = "protocol")]

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::connect::{
    ClientMetadata, Environment, Establish, EstablishOptions, Nonce, ProxyStep, ScramCache, Socks5,
    Step,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::monitor::{DeadlineReason, Event as Heartbeat, SocketId};
use cenote_core::pool::{
    ConnId, Event, Health, Input, Instant, NoPayload, PoolOptions, PoolState, Queued, ServiceId,
};
use cenote_core::trace::{
    ActionDifference, ActionName, ActionRecord, JournalOptions, Recorder, Replay, TraceInfo,
    TraceWriter,
};
use cenote_core::uri::{ConnectionString, Secret, UriPart};
use cenote_core::wire::{
    Channel, Flags, Framer, Ids, Message, MessageBuf, MessageLimit, MessageWriter, Query,
};

/// All of `parts` are in it.
#[track_caller]
fn shows(value: &dyn Debug, parts: &[&str]) {
    let shown = format!("{value:?}");
    for part in parts {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
}

#[test]
fn messages() {
    let body: RawDocumentBuf = rawdoc! { "ping": 1, "comment": "private" };
    let mut bytes = Vec::new();
    MessageWriter::new(&mut bytes, Ids::request(7), Flags::NONE, &body)
        .finish(MessageLimit::DEFAULT)
        .expect("a message");
    let mut framer = Framer::new(MessageLimit::DEFAULT);
    framer.push(&bytes[..20]);
    shows(&framer, &["Framer"]);
    framer.push(&bytes[20..]);
    let frame = framer.next_frame().expect("a frame").expect("a whole one");
    shows(&frame, &["Frame", "request_id: 7"]);
    shows(&Message::parse(frame).expect("a message"), &["Message", "request_id: 7", "flags"]);
    let kept = MessageBuf::parse(bytes, MessageLimit::DEFAULT).expect("a message");
    shows(&kept, &["MessageBuf", "request_id: 7", "flags"]);
    shows(&kept.as_message().sequences(), &["Sequences", "Reader", "offset", "left: "]);
    let mut channel = Channel::new();
    channel.begin(&body, Some("admin"), Flags::NONE).expect("its turn");
    shows(&channel, &["Channel", "limit", "Plain"]);
    let mut out = Vec::new();
    shows(&MessageWriter::new(&mut out, Ids::request(8), Flags::NONE, &body), &["MessageWriter"]);
    let query = Query { flags: 4, collection: "a.b", skip: 0, limit: -1, document: &body };
    shows(&query, &["Query", "flags: 4", "a.b"]);
    for shown in [format!("{kept:?}"), format!("{channel:?}"), format!("{query:?}")] {
        assert!(!shown.contains("business"), "{shown}");
    }
}

#[test]
fn commands_show_their_names() {
    let uri = ConnectionString::parse("mongodb://db").expect("a URI");
    let client = ClientMetadata::new(None, &Environment::default()).expect("no name");
    let options = EstablishOptions::new(&uri, &client);
    let nonces = ["a", "b"].map(|text| Nonce::from_text(text).expect("a nonce"));
    let mut establish = Establish::new(Arc::new(options), nonces).expect("no login");
    let Ok(Step::Send(hello)) = establish.next_step() else { panic!("hello comes first") };
    shows(&hello, &["Command", "isMaster"]);
}

#[test]
fn what_is_secret_has_a_name() {
    shows(&Secret::from("pencil".to_owned()), &["Secret(…)"]);
    shows(&Nonce::from_text("abc").expect("a nonce"), &["Nonce(…)"]);
    shows(&ScramCache::default(), &["ScramCache"]);
    let server = "db.example.com".parse().expect("an address");
    let mut proxy = Socks5::new(&server, None).expect("it fits");
    shows(&proxy, &["Socks5"]);
    let step = proxy.next_step().expect("a step");
    assert!(matches!(step, ProxyStep::Send(_)));
    shows(&step, &["Send(ProxyBytes(…))"]);
}

#[test]
fn what_a_pool_refuses() {
    let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {});
    let (id, health) = (ConnId::from_parts(3, 1), Health::Healthy);
    let back = Input::CheckedIn { id, conn: (), health };
    let mut pool = pool.expect("options");
    let misuse = pool.handle(Instant::ORIGIN, back, &mut |_| {}).expect_err("it is not in use");
    shows(&misuse, &["Misuse", "CheckedIn", "ForeignConnection"]);
    let reason = "CheckedIn refused: this pool has never made a connection c3 (slot 1)";
    assert_eq!(misuse.to_string(), reason);
    let queued =
        Queued::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default()).expect("options");
    shows(&queued, &["Queued(paused ", ", 1 actions)"]);
}

#[test]
fn pools_and_their_recorders() {
    let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {});
    let mut pool = Recorder::new(pool.expect("options"))
        .with_flight_recorder(1000)
        .with_journal(JournalOptions::default());
    pool.handle(Instant::ORIGIN, Input::Ready, &mut |_| {}).expect("legal");
    shows(&*pool, &["PoolState(ready "]);
    shows(&pool, &["Recorder", "flight_recorder: true", "journal: true"]);
    let recording = pool.flight_recording().expect("there is a flight recorder");
    shows(&recording, &["FlightRecording", "1"]);
    pool.flush();
    let chunk = pool.take_chunk().expect("what happened");
    shows(&chunk, &["Chunk(1 inputs in ", "from a state)"]);
    let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
    shows(&writer, &["TraceWriter"]);
    writer.write(&chunk).expect("memory");
    let trace = writer.finish().expect("memory");
    shows(&Replay::new(trace.as_slice()).expect("a trace"), &["Replay", "header", "pool"]);
    shows(&ServiceId([0xAB; 12]), &["abababababababababababab"]);
    shows(&ConnId::from_parts(3, 1), &["3"]);
    shows(&Instant::from_nanos(1_500_000_000), &["1.5"]);
    let (event, address) = (Event::<u32>::ConnectionPoolReady, "db".parse().expect("an address"));
    let record = LogRecord::new(&event, &address, &LogSettings::default());
    shows(&record, &["LogRecord", "Connection pool ready", "db"]);
}

#[test]
fn places_in_a_connection_string() {
    let shown = [
        (UriPart::Username, "the user name"),
        (UriPart::Password, "the password"),
        (UriPart::Host(2), "host 2"),
        (UriPart::Database, "the database name"),
        (UriPart::Option(3), "option 3"),
    ];
    for (place, words) in shown {
        assert_eq!(place.to_string(), words);
    }
}

#[test]
fn warnings_of_connection_strings() {
    let parsed = ConnectionString::parse("mongodb://db/?maxConecting=3").expect("a warning");
    assert_eq!(parsed.warnings().len(), 1);
    assert_eq!(parsed.warnings()[0].option(), "maxConecting");
}

#[test]
fn what_a_trace_has_otherwise() {
    let id = Some(ConnId::from_parts(3, 1));
    let name = ActionName::Interrupt;
    let got = Some(ActionRecord { name, connection: id, nanos: None, detail: None });
    let text = ActionDifference { index: 2, recorded: None, got }.to_string();
    assert_eq!(text, "action 2 is interrupt c3, but nothing was recorded");
}

#[test]
fn monitors() {
    let error = ConnectionError::network(Stage::Tcp, "refused");
    let socket = SocketId(1);
    let names = [
        Heartbeat::ServerHeartbeatStarted { awaited: true, socket, server_connection_id: None },
        Heartbeat::ServerHeartbeatFailed {
            awaited: true,
            duration: Duration::ZERO,
            socket,
            server_connection_id: None,
            error,
        },
    ]
    .map(|event| event.name());
    assert_eq!(names, ["ServerHeartbeatStarted", "ServerHeartbeatFailed"]);
    let (previous, new) = (Arc::default(), Arc::default());
    let news = [
        Heartbeat::ServerHeartbeatStarted { awaited: false, socket, server_connection_id: None }
            .is_news(),
        Heartbeat::ServerDescriptionChanged { previous, new }.is_news(),
    ];
    assert_eq!(news, [false, true]);
    let reasons = [
        DeadlineReason::Check,
        DeadlineReason::CheckTimeout,
        DeadlineReason::RoundTrip,
        DeadlineReason::RoundTripTimeout,
    ];
    let texts = [
        "the next check",
        "a check times out",
        "the next round-trip time",
        "a round-trip time is given up",
    ];
    assert_eq!(reasons.map(|reason| reason.to_string()), texts);
}

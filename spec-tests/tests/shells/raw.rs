//! Messages that a driver encodes itself, on connections that are checked out.

use std::thread;
use std::time::Duration;

use bson::{RawBson, RawDocumentBuf, rawdoc};
use cenote_core::error::{ConnectionError, Kind, OperationError, Stage};
use cenote_core::uri::Compressor;
use cenote_core::wire::{Flags, Header, Ids, MessageLimit, MessageWriter, OpCode};
use cenote_endpoint::{Endpoint, Fault, ListenOptions, Settings};

use crate::shell::{AnyConnection, Shell, on_all_runtimes};
use crate::world::{at, closed, ping, plain, pool, set, tls, with};

on_all_runtimes!(
    whole_messages_are_exchanged,
    the_limit_of_messages_is_the_servers,
    an_unacknowledged_write,
    an_unacknowledged_write_may_be_sent_as_a_command,
    misuse_is_refused_and_leaves_the_connection_usable,
    exhaust_replies,
    a_reply_that_is_not_received_closes_the_connection,
    an_interrupt_and_a_timeout_end_an_exchange,
);

/// A message with the next number of the connection.
pub(crate) fn message(
    connection: &mut dyn AnyConnection,
    flags: Flags,
    command: &bson::RawDocument,
    documents: &[RawDocumentBuf],
) -> (i32, Vec<u8>) {
    let (id, limit) = (connection.next_request_id(), connection.message_limit());
    let mut message = Vec::new();
    let ids = Ids::request(id);
    let mut writer =
        MessageWriter::command(&mut message, ids, flags, command, "test").expect("it works");
    if !documents.is_empty() {
        writer.sequence("documents", documents).expect("it works");
    }
    writer.finish(limit).expect("it works");
    (id, message)
}

fn ping_message(connection: &mut dyn AnyConnection) -> Vec<u8> {
    message(connection, Flags::NONE, &rawdoc! { "ping": 1 }, &[]).1
}

fn configuration(outcome: Result<impl std::fmt::Debug, OperationError>) -> String {
    let OperationError::Connection(error) = outcome.expect_err("it fails") else {
        panic!("interrupted")
    };
    assert_eq!((error.stage(), error.kind()), (Stage::Operation, &Kind::Configuration), "{error}");
    error.to_string()
}

fn count(connection: &mut dyn AnyConnection, collection: &str) -> usize {
    let find = rawdoc! { "find": collection, "batchSize": 100_000 };
    let reply = connection.command("test", &find).expect("it works");
    let cursor = reply.get_document("cursor").expect("it works");
    cursor.get_array("firstBatch").expect("it works").into_iter().count()
}

/// With every compressor and without, over TLS: small, large, with sequences and checksums.
// MS-04, MS-12
fn whole_messages_are_exchanged(shell: Shell) {
    let endpoint = tls(Settings::default());
    for (name, compressor) in [
        ("", None),
        ("snappy", Some(Compressor::Snappy)),
        ("zlib", Some(Compressor::Zlib)),
        ("zstd", Some(Compressor::Zstd)),
    ] {
        let (pool, _) = pool(shell, &with(&endpoint.uri(), &format!("compressors={name}")));
        let mut connection = pool.check_out().expect("it works");
        assert_eq!(connection.description().compressor, compressor);
        let collection = format!("birds{name}");
        let documents: Vec<_> = (0..2000)
            .map(|id| rawdoc! { "_id": id, "text": "again and again and again".repeat(4) })
            .collect();
        let insert = rawdoc! { "insert": collection.as_str() };
        let (id, bytes) = message(&mut *connection, Flags::CHECKSUM_PRESENT, &insert, &documents);
        connection.send(&bytes).expect("it works");
        assert!(!connection.is_reusable());
        let reply = connection.receive().expect("it works");
        assert_eq!(reply.header().ids.response_to, id);
        assert_eq!(reply.header().op_code, OpCode::Msg, "compression is not visible");
        assert_eq!(reply.into_body().get_i32("n").ok(), Some(2000));
        assert!(connection.is_reusable());

        let find = rawdoc! { "find": collection.as_str(), "batchSize": 2000 };
        let (_, bytes) = message(&mut *connection, Flags::NONE, &find, &[]);
        connection.send(&bytes).expect("it works");
        let reply = connection.receive().expect("it works");
        assert!(reply.as_bytes().len() > 100_000);
        assert_eq!(reply.header().message_length as usize, reply.as_bytes().len());
        // An error is a reply, too; and request ids may be the driver's own.
        let mut bytes = Vec::new();
        let refused = rawdoc! { "nonsense": 1 };
        MessageWriter::command(&mut bytes, Ids::request(-7), Flags::NONE, &refused, "test")
            .expect("it works")
            .finish(connection.message_limit())
            .expect("it works");
        connection.send(&bytes).expect("it works");
        let reply = connection.receive().expect("it works");
        assert_eq!(reply.header().ids.response_to, -7);
        assert_eq!(reply.body().get_i32("code").ok(), Some(59));
        drop(connection);
        assert!(ping(&pool));
        assert_eq!(pool.snapshot().connections_created, 1);
    }
    let compressed = endpoint.with(|server, _| server.statistics()).compressed_commands;
    assert_eq!(compressed.len(), 3, "{compressed:?}");
}

// CO-20
fn the_limit_of_messages_is_the_servers(shell: Shell) {
    let mut settings = Settings::default();
    settings.limits.message_size = 4096;
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let (pool, _) = pool(shell, &endpoint.uri());
    let mut connection = pool.check_out().expect("a connection");
    assert_eq!(connection.message_limit().bytes(), 4096);
    let large = rawdoc! { "ping": 1, "text": "x".repeat(4096) };
    let text = configuration(connection.command("test", &large));
    assert!(text.contains("takes only 4096"), "{text}");
    let [first, second] = [(); 2].map(|()| connection.next_request_id());
    assert_ne!(first, second);
}

// MS-06, LN-07, CO-19, MS-08: no reply comes, and the connection is usable at once.
fn an_unacknowledged_write(shell: Shell) {
    for compressors in ["", "compressors=zstd"] {
        let endpoint = plain();
        let (pool, events) = pool(shell, &with(&endpoint.uri(), compressors));
        let insert = rawdoc! {
            "insert": "c",
            "documents": [{ "_id": 1 }],
            "writeConcern": { "w": 0 },
        };
        let mut connection = pool.check_out().expect("it works");
        connection.command_unacknowledged("test", &insert).expect("it works");
        drop(connection);
        let mut connection = pool.check_out().expect("it works");
        let raw = rawdoc! { "insert": "c", "writeConcern": { "w": 0 } };
        let documents = [rawdoc! { "_id": 2 }];
        let (_, bytes) = message(&mut *connection, Flags::MORE_TO_COME, &raw, &documents);
        connection.send(&bytes).expect("it works");
        assert!(connection.is_reusable());
        drop(connection);
        let mut connection = pool.check_out().expect("it works");
        assert_eq!(count(&mut *connection, "c"), 2);
        // One that cannot be written is not sent.
        connection.command_unacknowledged("test", &insert).expect("it works");
        assert!(connection.command("test", &rawdoc! { "ping": 1 }).is_ok());
        assert_eq!((connection.id(), closed(&events, 0).len()), (1, 0));
    }
}

/// It has a reply then.
fn an_unacknowledged_write_may_be_sent_as_a_command(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &endpoint.uri());
    let mut connection = pool.check_out().expect("it works");
    let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": 0 } };
    let reply = connection.command("test", &insert).expect("it works");
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0));
    assert!(connection.is_reusable());

    // Zero of every numeric type says so.
    for zero in [RawBson::Int32(0), RawBson::Int64(0), RawBson::Double(0.0)] {
        let concern = rawdoc! { "w": zero };
        let insert = rawdoc! { "insert": "c", "documents": [{}], "writeConcern": concern };
        connection.command_unacknowledged("test", &insert).expect("it works");
    }
}

// CO-04, MS-03
fn misuse_is_refused_and_leaves_the_connection_usable(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri());
    let mut connection = pool.check_out().expect("it works");
    let insert = rawdoc! { "insert": "c", "documents": [{}], "writeConcern": { "w": 1 } };
    let text = configuration(connection.command_unacknowledged("test", &insert));
    assert!(text.contains("w: 0"), "{text}");
    let text = configuration(connection.receive());
    assert!(text.contains("no reply is due"), "{text}");
    let text = configuration(connection.command("a\0b", &rawdoc! { "ping": 1 }));
    assert!(text.contains("$db"), "{text}");
    let text = configuration(connection.command("test", &rawdoc! {}));
    assert!(text.contains("no name"), "{text}");

    let good = ping_message(&mut *connection);
    let query = Header { op_code: OpCode::Query, ..Header::parse(&good, LIMIT).expect("it works") };
    let query = [&query.to_bytes(), &good[16..]].concat();
    for bad in [&good[..15], &good[..good.len() - 1], &query] {
        configuration(connection.send(bad));
    }
    let large = rawdoc! { "ping": 1, "text": "x".repeat(48_000_000) };
    let text = configuration(connection.command("test", &large));
    assert!(text.contains("takes only 48000000"), "{text}");

    connection.send(&good).expect("it works");
    configuration(connection.send(&good));
    configuration(connection.command("test", &rawdoc! { "ping": 1 }));
    assert!(configuration(connection.raw_stream()).contains("not complete"));
    assert_eq!(connection.receive().expect("it works").body().get_f64("ok").ok(), Some(1.0));
    drop(connection);
    assert!(ping(&pool));
    assert_eq!((pool.snapshot().connections_created, closed(&events, 0).len()), (1, 0));
}

const LIMIT: MessageLimit = MessageLimit::DEFAULT;

/// Begins an endless stream of replies to hello.
fn begin_exhaust(connection: &mut dyn AnyConnection) {
    let hello = connection.command("admin", &rawdoc! { "hello": 1 }).expect("it works");
    let version = hello.get_document("topologyVersion").expect("it works").to_owned();
    let hello = rawdoc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 1 };
    let (_, bytes) = message(connection, Flags::EXHAUST_ALLOWED, &hello, &[]);
    connection.send(&bytes).expect("it works");
}

// CO-19, MS-06, MS-09.
fn exhaust_replies(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri());
    let mut connection = pool.check_out().expect("it works");
    begin_exhaust(&mut *connection);
    let mut last = None;
    for _ in 0..3 {
        let reply = connection.receive().expect("it works");
        assert!(reply.flags().more_to_come);
        let ids = reply.header().ids;
        assert!(last.is_none_or(|last| ids.response_to == last));
        last = Some(ids.request_id);
        configuration(connection.command("admin", &rawdoc! { "ping": 1 }));
    }
    drop(connection);
    assert_eq!(closed(&events, 1), ["error"], "there is more to come");
    assert!(ping(&pool));
}

fn a_reply_that_is_not_received_closes_the_connection(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri());
    let mut connection = pool.check_out().expect("it works");
    let bytes = ping_message(&mut *connection);
    connection.send(&bytes).expect("it works");
    drop(connection);
    assert_eq!(closed(&events, 1), ["error"]);
}

// ER-07
fn an_interrupt_and_a_timeout_end_an_exchange(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &with(&endpoint.uri(), "socketTimeoutMS=1000"));
    stall_pings(&endpoint);
    let mut connection = pool.check_out().expect("it works");
    let bytes = ping_message(&mut *connection);
    connection.send(&bytes).expect("it works");
    let OperationError::Connection(error) = connection.receive().expect_err("it fails") else {
        panic!("it is not interrupted")
    };
    assert_eq!(error.kind(), &Kind::NetworkTimeout { after: Duration::from_secs(1) });
    drop(connection);

    let (patient, patient_events) = crate::world::pool(shell, &endpoint.uri());
    let mut connection = patient.check_out().expect("it works");
    let bytes = ping_message(&mut *connection);
    connection.send(&bytes).expect("it works");
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            patient.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(1)), true);
        });
        connection.receive()
    });
    assert!(matches!(outcome, Err(OperationError::Interrupted(_))), "{outcome:?}");
    let again = connection.send(&bytes);
    assert!(matches!(again, Err(OperationError::Interrupted(_))), "{again:?}");
    drop(connection);
    for events in [events, patient_events] {
        assert_eq!(closed(&events, 1), ["error"]);
    }
}

fn stall_pings(endpoint: &Endpoint) {
    set(endpoint, at(Fault::Stall, "ping"));
}

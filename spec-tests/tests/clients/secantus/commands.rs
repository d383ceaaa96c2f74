//! Commands through the wire format, as this server understands them.

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::{Kind, Stage};
use cenote_core::wire::Flags;

use crate::secantus::open;
use crate::secantus::server::Server;

const MANY: i32 = 5000;

fn birds(from: i32) -> Vec<RawDocumentBuf> {
    (from..from + MANY).map(|id| rawdoc! { "_id": id, "name": "x".repeat(100) }).collect()
}

// MS-04, MS-05, MS-12: documents in a section of their own, and large replies.
#[test]
fn what_is_inserted_is_found() {
    let server = Server::plain();
    let mut connection = open(&server.uri("")).unwrap();
    let insert = rawdoc! { "insert": "birds", "ordered": false };
    let reply = connection.command_with("zoo", &insert, "documents", &birds(0)).unwrap();
    assert_eq!(reply.get_i32("n").ok(), Some(MANY));

    let find = rawdoc! { "find": "birds", "batchSize": MANY + 1, "sort": { "_id": 1 } };
    let reply = connection.command("zoo", &find).unwrap();
    assert!(reply.as_bytes().len() > 500_000);
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let ids = batch.into_iter().map(|bird| bird.unwrap().as_document().unwrap().get_i32("_id"));
    assert!(ids.map(Result::unwrap).eq(0..MANY));
    assert!(connection.is_reusable());
}

// MS-14: this server skips checksums; at least it does not stumble over them.
#[test]
fn a_message_may_end_with_its_checksum() {
    let server = Server::plain();
    let mut connection = open(&server.uri("")).unwrap();
    connection.send_command("admin", &rawdoc! { "ping": 1 }, Flags::CHECKSUM_PRESENT).unwrap();
    let reply = connection.receive().unwrap();
    assert_eq!((reply.body().get_f64("ok").ok(), reply.flags().more_to_come), (Some(1.0), false));
}

// MS-08: nothing comes back, and the connection can be used at once.
#[test]
fn an_unacknowledged_write_has_no_reply() {
    let server = Server::plain();
    let mut connection = open(&server.uri("")).unwrap();
    let insert =
        rawdoc! { "insert": "birds", "documents": [{ "_id": 1 }], "writeConcern": { "w": 0 } };
    connection.send_command("zoo", &insert, Flags::MORE_TO_COME).unwrap();
    assert!(connection.is_reusable());
    let count = connection.command("zoo", &rawdoc! { "count": "birds" }).unwrap();
    assert_eq!(count.get_i32("n").ok(), Some(1));
}

// MS-09: a reply may be followed by another one without a request. All of this server's answer the
// request instead of the reply before, which the protocol forbids, and which is noticed as soon as
// the two differ.
#[test]
fn hello_can_be_streamed() {
    let server = Server::plain();
    let mut connection = open(&server.uri("")).unwrap();
    let hello = connection.command("admin", &rawdoc! { "hello": 1 }).unwrap();
    let version = hello.get_document("topologyVersion").unwrap().to_owned();
    let stream = rawdoc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 50_i64 };
    connection.send_command("admin", &stream, Flags::EXHAUST_ALLOWED).unwrap();
    let reply = connection.receive().unwrap();
    assert_eq!(reply.body().get_str("setName").ok(), Some("secantus"));
    assert!(reply.flags().more_to_come);
    let error = (0..3).find_map(|_| connection.receive().err()).unwrap();
    assert_eq!((error.stage(), error.kind()), (Stage::Operation, &Kind::Protocol), "{error}");
    assert!(error.reason().starts_with("expected a reply to message"), "{error}");
    assert!(!connection.is_reusable());
}

// T-45: after a refusal the connection is as good as before.
#[test]
fn a_refused_command_leaves_the_connection_usable() {
    let server = Server::plain();
    let mut connection = open(&server.uri("")).unwrap();
    let error = connection.command("admin", &rawdoc! { "noSuchCommand": 1 }).unwrap_err();
    assert_eq!(error.stage(), Stage::Operation);
    assert!(matches!(error.kind(), Kind::Command(refusal) if refusal.code == Some(59)), "{error}");
    assert!(error.leaves_connection_healthy() && connection.is_reusable());
    connection.command("admin", &rawdoc! { "ping": 1 }).unwrap();
}

//! The first command, and what its reply means.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, doc, oid::ObjectId};
use cenote_core::connect::{
    Command, ConnectionDescription, Establish, EstablishOptions, LOAD_BALANCING_UNSUPPORTED,
    Limits, ScramCache, ServerApi, ServerKind, Step,
};
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};
use cenote_core::pool::ServiceId;
use cenote_core::sdam::TopologyVersion;
use cenote_core::uri::{Compressor, Mechanism};

use crate::connect::server::{Server, converse, establish, nonces, options, raw};

fn hello(options: EstablishOptions) -> Document {
    let establish = Establish::new(Arc::new(options), nonces());
    let mut establish = establish.expect("nothing against it");
    let Ok(Step::Send(command)) = establish.next_step() else { panic!("hello comes first") };
    assert!(matches!(establish.next_step(), Ok(Step::Receive)));
    Document::try_from(command.body()).expect("a document of ours")
}

fn read(uri: &str, reply: &Document) -> Result<ConnectionDescription, ConnectionError> {
    let outcome = converse(establish(uri), &mut ScramCache::default(), |_| reply.clone());
    assert_eq!(outcome.handshaken.is_some(), outcome.result.is_ok());
    outcome.result
}

// HS-02 to HS-06, HS-10, HS-48, CM-02, CF-23 to CF-25
#[test]
fn the_old_name_and_everything_else() {
    let options = options("mongodb://db");
    let client = Document::try_from(options.client.clone()).unwrap();
    let expected = doc! {
        "isMaster": 1, "helloOk": true, "backpressure": "2", "client": client, "compression": [],
        "$db": "admin",
    };
    assert_eq!(hello(options), expected);
}

// HS-03, LB-10, LB-11
#[test]
fn the_new_name_behind_a_load_balancer() {
    let hello = hello(options("mongodb://db/?loadBalanced=true"));
    assert_eq!(hello.get("hello"), Some(&Bson::Int32(1)));
    assert_eq!(hello.get("loadBalanced"), Some(&Bson::Boolean(true)));
    assert!(!hello.contains_key("helloOk"));
}

// OP-27
#[test]
fn compressors_are_offered_if_they_are_built_in() {
    let offered = options("mongodb://db/?compressors=zstd,zlib,snappy").compressors;
    let all = [Compressor::Zstd, Compressor::Zlib, Compressor::Snappy];
    assert_eq!(offered, all.into_iter().filter(|it| it.is_built()).collect::<Vec<_>>());
}

// HS-12: on each command.
#[test]
fn a_declared_api_is_declared_every_time() {
    let mut options = options("mongodb://user:pencil@db/?authMechanism=SCRAM-SHA-256");
    options.server_api = Some(ServerApi { strict: Some(true), deprecation_errors: None });
    let establish = Establish::new(Arc::new(options), nonces()).unwrap();
    let mut server = Server { speculates: false, ..Server::new(Mechanism::ScramSha256) };
    let outcome = converse(establish, &mut ScramCache::default(), |it| server.answer(it));
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.commands.len(), 3);
    assert!(outcome.commands[0].contains_key("hello"));
    for command in outcome.commands {
        assert_eq!(command.get_str("apiVersion").ok(), Some("1"));
        assert_eq!(command.get_bool("apiStrict").ok(), Some(true));
        assert!(!command.contains_key("apiDeprecationErrors"));
    }
}

// HS-40, CM-01, CM-03, CM-05, CM-06, CM-14, CF-26
#[cfg(all(feature = "snappy", feature = "zlib", feature = "zstd"))]
#[test]
fn the_first_compressor_of_ours_that_they_have() {
    use cenote_core::uri::Compressor;

    let cases = [
        ("zlib,snappy", doc! { "compression": ["snappy", "zlib"] }, Some(Compressor::Zlib)),
        ("zstd,snappy", doc! { "compression": ["snappy", 5, "new"] }, Some(Compressor::Snappy)),
        ("snappy", doc! { "compression": ["zlib"] }, None),
        ("snappy", doc! { "compression": [] }, None),
        ("snappy", doc! {}, None),
        ("snoopy", doc! { "compression": ["snappy"] }, None),
    ];
    for (ours, mut reply, expected) in cases {
        let uri = format!("mongodb://db/?compressors={ours}");
        let offered = if ours == "snoopy" { Vec::new() } else { ours.split(',').collect() };
        let array = Bson::from(offered);
        assert_eq!(hello(options(&uri)).get("compression"), Some(&array));
        reply.insert("ok", 1);
        assert_eq!(read(&uri, &reply).unwrap().compressor, expected);
    }
}

// CO-20, CO-21, HS-11: everything that is kept.
// Reports mongo-c-driver#1222: a `connectionId` that is a double is not read.
#[test]
fn a_full_reply() {
    let process_id = ObjectId::from_bytes([3; 12]);
    let reply = doc! {
        "helloOk": true, "isWritablePrimary": true, "setName": "rs", "minWireVersion": 0,
        "maxWireVersion": 27, "maxBsonObjectSize": 1000, "maxMessageSizeBytes": 2000_i64,
        "maxWriteBatchSize": 30.0, "logicalSessionTimeoutMinutes": 30, "connectionId": 812.0,
        "topologyVersion": { "processId": process_id, "counter": 6_i64 },
        "serviceId": "of no meaning here", "ok": 1.0,
    };
    let description = read("mongodb://db", &reply).unwrap();
    assert_eq!(description.kind, ServerKind::RsPrimary);
    assert!(description.hello_ok);
    assert_eq!((description.min_wire_version, description.max_wire_version), (0, 27));
    let limits =
        Limits { max_bson_object_size: 1000, max_message_size: 2000, max_write_batch_size: 30 };
    assert_eq!(description.limits, limits);
    assert_eq!(description.set_name.as_deref(), Some("rs"));
    assert_eq!(description.session_timeout_minutes, Some(30));
    assert_eq!(description.connection_id, Some(812));
    assert_eq!(
        description.topology_version,
        Some(TopologyVersion { process_id: [3; 12], counter: 6 })
    );
    assert_eq!(description.service_id, None);
}

#[test]
fn an_empty_reply_has_the_defaults() {
    let description = read("mongodb://db", &doc! { "ok": 1, "msg": null }).unwrap();
    assert_eq!(description.limits.max_bson_object_size, 16_777_216);
    assert_eq!(description.limits.max_message_size, 48_000_000);
    assert_eq!(description.limits.max_write_batch_size, 100_000);
    assert_eq!((description.max_wire_version, description.connection_id), (0, None));
    assert!(!description.hello_ok);
}

// HS-11: in both shapes.
#[test]
fn kinds_of_servers() {
    let kinds = [
        (doc! {}, ServerKind::Standalone),
        (doc! { "ismaster": true }, ServerKind::Standalone),
        (doc! { "msg": "isdbgrid" }, ServerKind::Mongos),
        (doc! { "isreplicaset": true }, ServerKind::RsGhost),
        (doc! { "setName": "rs", "isWritablePrimary": true }, ServerKind::RsPrimary),
        (doc! { "setName": "rs", "ismaster": true }, ServerKind::RsPrimary),
        (
            doc! { "setName": "rs", "isWritablePrimary": false, "ismaster": true, "secondary": 1 },
            ServerKind::RsSecondary,
        ),
        (doc! { "setName": "rs", "secondary": true, "hidden": true }, ServerKind::RsOther),
        (doc! { "setName": "rs", "arbiterOnly": true }, ServerKind::RsArbiter),
        (doc! { "setName": "rs" }, ServerKind::RsOther),
    ];
    for (mut reply, kind) in kinds {
        reply.insert("ok", 1);
        assert_eq!(read("mongodb://db", &reply).unwrap().kind, kind, "{reply}");
    }
}

// LB-12, LB-20
#[test]
fn behind_a_load_balancer_there_is_a_service() {
    let uri = "mongodb://db/?loadBalanced=true";
    let reply = doc! { "ok": 1, "serviceId": ObjectId::from_bytes([9; 12]), "msg": "isdbgrid" };
    let description = read(uri, &reply).unwrap();
    assert_eq!(description.service_id, Some(ServiceId([9; 12])));
    assert_eq!(description.kind, ServerKind::LoadBalancer);

    let error = read(uri, &doc! { "ok": 1 }).unwrap_err();
    assert_eq!((error.stage(), error.kind()), (Stage::Hello, &Kind::Configuration));
    assert_eq!(error.reason(), LOAD_BALANCING_UNSUPPORTED);
    let text = "Driver attempted to initialize in load balancing mode, \
                but the server does not support this mode.";
    assert_eq!(error.reason(), text);

    let error = read(uri, &doc! { "ok": 1, "serviceId": 5 }).unwrap_err();
    assert_eq!(error.to_string(), "hello: `serviceId` in the reply is not an ObjectId");
}

// HS-01, ER-36, T-58: a refusal is not a network error.
#[test]
fn a_refused_hello() {
    for code in [91, 11600, 18] {
        let error = read("mongodb://db", &doc! { "ok": 0, "code": code }).unwrap_err();
        assert_eq!(error.stage(), Stage::Hello);
        assert_eq!(error.command_error().and_then(|it| it.code), Some(code));
        assert_eq!(error.labels(RetryWrites::Enabled).count(), 0);
    }
    let warned = doc! { "ok": 1, "writeConcernError": { "code": 64 } };
    assert!(read("mongodb://db", &warned).is_ok(), "which is no refusal");
}

/// A reply that neither succeeds nor fails is not taken for a refusal without a reason.
#[test]
fn a_reply_that_says_nothing() {
    for reply in [doc! {}, doc! { "ok": null }, doc! { "maxWireVersion": 25 }] {
        let error = read("mongodb://db", &reply).unwrap_err();
        assert_eq!(error.to_string(), "hello: the reply has no `ok`");
        assert_eq!(error.kind(), &Kind::Protocol);
    }
}

// SD-51, AU-01, CM-10: whatever the client is configured to do.
#[test]
fn a_monitor_does_not_authenticate() {
    let options = options("mongodb://user:pencil@db/?compressors=zlib").for_monitor();
    let client = Document::try_from(options.client.clone()).unwrap();
    let expected = doc! {
        "isMaster": 1, "helloOk": true, "backpressure": "2", "client": client, "compression": [],
        "$db": "admin",
    };
    assert_eq!(hello(options), expected);
}

// HS-07, HS-08
#[test]
fn a_monitor_asks_again() {
    let process_id = ObjectId::from_bytes([3; 12]);
    let version = doc! { "processId": process_id, "counter": 6_i64 };
    let old = doc! { "ok": 1, "ismaster": true, "connectionId": 4 };
    let new = doc! { "ok": 1, "helloOk": true, "topologyVersion": version.clone() };
    let mut declared = options("mongodb://db");
    declared.server_api = Some(ServerApi::default());
    let cases = [
        (options("mongodb://db"), &old, "isMaster", doc! {}),
        (options("mongodb://db"), &new, "hello", doc! {}),
        (declared, &old, "hello", doc! { "apiVersion": "1" }),
    ];
    for (options, reply, name, api) in cases {
        let last = ConnectionDescription::from_reply(&raw(reply), &options).unwrap();
        let mut expected = doc! { name: 1, "helloOk": true };
        let check = Command::check(&options, &last);
        let mut full = expected.clone();
        full.extend(doc! { "$db": "admin" }.into_iter().chain(api.clone()));
        assert_eq!(Document::try_from(check.body()).unwrap(), full);

        let awaited = Command::awaited_check(&options, &last, Duration::from_micros(10_000_999));
        assert_eq!(awaited.is_some(), reply.contains_key("topologyVersion"));
        if let Some(awaited) = awaited {
            expected.insert("topologyVersion", version.clone());
            expected.insert("maxAwaitTimeMS", 10_000_i64);
            expected.extend(doc! { "$db": "admin" }.into_iter().chain(api));
            assert_eq!(Document::try_from(awaited.body()).unwrap(), expected);
        }
    }
}

/// A later reply negotiates nothing, and is refused as a first one is.
#[test]
fn what_a_monitor_is_answered() {
    let options = options("mongodb://db/?compressors=zlib");
    let read = |reply| ConnectionDescription::from_reply(&raw(&reply), &options);
    let description = read(doc! { "ok": 1, "setName": "rs", "compression": ["zlib"] }).unwrap();
    assert_eq!((description.kind, description.compressor), (ServerKind::RsOther, None));
    let error = read(doc! { "ok": 0, "code": 91 }).unwrap_err();
    assert_eq!(error.to_string(), "hello: the server gave no reason (code 91)");
}

#[test]
fn fields_of_the_wrong_type() {
    let whole = "a whole number";
    let small = "a whole number of 32 bits";
    let count = "a whole number from 1 to 2147483647";
    let cases = [
        ("ok", Bson::from("yes"), "a boolean"),
        ("helloOk", Bson::from("yes"), "a boolean"),
        ("isreplicaset", Bson::from("yes"), "a boolean"),
        ("msg", Bson::from(5), "a string"),
        ("setName", Bson::from(5), "a string"),
        ("minWireVersion", Bson::from(0.5), small),
        ("maxWireVersion", Bson::from(1_i64 << 40), small),
        ("maxBsonObjectSize", Bson::from(0), count),
        ("maxMessageSizeBytes", Bson::from(-1), count),
        ("maxWriteBatchSize", Bson::from(1_i64 << 31), count),
        ("logicalSessionTimeoutMinutes", Bson::from("30"), whole),
        ("connectionId", Bson::from(f64::NAN), whole),
        ("topologyVersion", Bson::from(1), "a document"),
        ("compression", Bson::from("zstd"), "an array"),
        ("speculativeAuthenticate", Bson::from(true), "a document"),
    ];
    for (name, value, expected) in cases {
        let error = read("mongodb://db", &doc! { "ok": 1, name: value }).unwrap_err();
        let reason = format!("hello: `{name}` in the reply is not {expected}");
        assert_eq!(error.to_string(), reason);
        assert_eq!(error.kind(), &Kind::Protocol);
    }
}

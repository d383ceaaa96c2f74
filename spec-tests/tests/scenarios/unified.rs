//! Our own tests in the unified format, on both shells; and proof that the runner notices when a file
//! and a client disagree, and refuses what it does not know.

use std::path::{Path, PathBuf};

use cenote::formats::{
    self, Document, Outcome, Place, Played, Reason, Target, Unreadable, Verdict, unified,
};
use serde_json::{Value, json};

const SHELLS: [Target; 3] = Target::SHELLS;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/unified")
}

#[test]
fn every_scenario_passes() {
    let Played { outcomes, unplayed } =
        formats::play(&[folder()], &SHELLS, &Place::Endpoint).unwrap();
    assert_eq!(unplayed, []);
    assert_eq!(outcomes.len(), 14 * SHELLS.len());
    for Outcome { file, target, verdict, description } in outcomes {
        assert_eq!(verdict, Verdict::Passed, "{}, {description} on {target}", file.display());
    }
}

/// A client of one server that pings, is observed in every way, and is closed.
fn easy() -> Value {
    json!({
        "description": "easy", "schemaVersion": "1.13",
        "createEntities": [
            { "client": {
                "id": "client", "uriOptions": { "maxPoolSize": 3 },
                "observeEvents": ["connectionCheckedOutEvent", "commandStartedEvent"],
                "observeLogMessages": { "connection": "debug" },
            } },
            { "database": { "id": "database", "client": "client", "databaseName": "zoo" } },
        ],
        "tests": [{
            "description": "a ping",
            "operations": [
                { "name": "runCommand", "object": "database",
                  "arguments": { "command": { "ping": 1 }, "commandName": "ping" },
                  "expectResult": { "ok": 1 } },
                { "name": "runCommand", "object": "database",
                  "arguments": { "command": { "none": 1 }, "commandName": "none" },
                  "expectError": { "isClientError": false, "errorCode": 59 } },
                { "name": "waitForEvent", "object": "testRunner",
                  "arguments": {
                      "client": "client", "event": { "commandStartedEvent": {} }, "count": 2 } },
                { "name": "close", "object": "client" },
            ],
            "expectEvents": [
                { "client": "client", "eventType": "cmap", "events": [
                    { "connectionCheckedOutEvent": {} }, { "connectionCheckedOutEvent": {} },
                    { "connectionCheckedOutEvent": {} },
                ] },
                { "client": "client", "events": [
                    { "commandStartedEvent": { "commandName": "ping", "databaseName": "zoo" } },
                    { "commandStartedEvent": { "command": { "none": 1 } } },
                    { "commandStartedEvent": { "commandName": "endSessions" } },
                ] },
            ],
            "expectLogMessages": [{ "client": "client", "messages": messages() }],
        }],
    })
}

fn messages() -> Vec<Value> {
    let served = ["Connection checkout started", "Connection checked out", "Connection checked in"];
    let begin = ["Connection pool created", "Connection pool ready", "Connection checkout started"];
    let first = [
        "Connection created",
        "Connection ready",
        "Connection checked out",
        "Connection checked in",
    ];
    let end = ["Connection closed", "Connection pool closed"];
    let all = begin.iter().chain(&first).chain(&served).chain(&served).chain(&end);
    let message = |text: &&str| {
        let data = json!({ "message": text, "serverPort": { "$$type": "int" } });
        json!({ "level": "debug", "component": "connection", "data": data })
    };
    all.map(message).collect()
}

fn play(document: Value, target: Target) -> Result<Verdict, Unreadable> {
    let document = Document::of(Path::new("changed.json"), document);
    let outcomes = unified::play_document(&document, target)?;
    let [outcome]: [Outcome; 1] = outcomes.try_into().expect("one test");
    Ok(outcome.verdict)
}

/// How to spoil the easy file, and what the runner must say to that.
type Spoiled = (fn(&mut Value), &'static str);

const BITES: &[Spoiled] = &[
    (|test| drop(list(test, "expectLogMessages/0/messages").pop()), "expected nothing more, saw"),
    (|test| list(test, "expectLogMessages/0/messages").swap(5, 6), "message 5: message: expected"),
    (
        |test| test["expectLogMessages"][0]["messages"][0]["data"]["maxPoolSize"] = json!(4),
        "message 0: maxPoolSize: expected 4, saw 3",
    ),
    (|test| drop(list(test, "expectEvents/0/events").pop()), "expected nothing more, saw"),
    (
        |test| test["expectEvents"][1]["events"][0]["commandStartedEvent"]["command"] = json!(1),
        "event 0: commandStartedEvent.command: expected 1",
    ),
    (
        |test| {
            let started = &mut test["expectEvents"][1]["events"][0]["commandStartedEvent"];
            started["hasServiceId"] = json!(true);
        },
        "hasServiceId: it is false",
    ),
    (|test| test["operations"][0]["expectResult"] = json!({ "ok": 0 }), "ok: expected 0, saw 1"),
    (|test| test["operations"][0]["expectError"] = json!({ "isError": true }), "it went well"),
    (|test| test["operations"][1]["expectError"]["errorCode"] = json!(1), "errorCode: Some(59)"),
    (
        |test| drop(test["operations"][1].as_object_mut().expect("a map").remove("expectError")),
        "59",
    ),
    (|test| test["operations"][2]["object"] = json!("client"), "operation of the testRunner"),
    (|test| limit(test, 9_000, &json!({ "$$exists": false })), "maxTimeMS: expected"),
    (|test| limit(test, 9_000, &json!({ "$$lte": 1 })), "maxTimeMS: expected"),
    (|test| limit(test, 0, &json!({ "$$type": "int" })), "maxTimeMS: expected"),
    (|test| test["outcome"] = json!([OUTCOME.clone()]), "outcome: expected"),
    // Names of what is not there.
    (|test| test["operations"][0]["object"] = json!("none"), "nothing is called none"),
    (|test| test["operations"][2]["arguments"]["client"] = json!("none"), "nothing is called none"),
    (|test| test["expectEvents"][1]["client"] = json!("none"), "nothing is called none"),
    (|test| test["expectLogMessages"][0]["client"] = json!("none"), "nothing is called none"),
    (
        |test| create(test, &json!({ "session": { "id": "s", "client": "x" } })),
        "nothing is called x",
    ),
    (
        |test| create(test, &json!({ "thread": { "id": "client" } })),
        "something called client already",
    ),
    (|test| message(test)["level"] = json!("error"), "message 0: level: expected \"error\", saw"),
    (|test| message(test)["component"] = json!("pool"), "component: expected \"pool\", saw"),
];

static OUTCOME: std::sync::LazyLock<Value> = std::sync::LazyLock::new(
    || json!({ "databaseName": "zoo", "collectionName": "birds", "documents": [{ "_id": 1 }] }),
);

/// The list at a place of the test.
fn list<'a>(test: &'a mut Value, place: &str) -> &'a mut Vec<Value> {
    test.pointer_mut(&format!("/{place}")).and_then(Value::as_array_mut).expect("a list")
}

/// Does nothing but define this.
fn create(test: &mut Value, entity: &Value) {
    test["operations"][0] = json!({
        "name": "createEntities", "object": "testRunner", "arguments": { "entities": [entity] },
    });
}

/// Gives the ping a timeout, and expects this as the `maxTimeMS` that the server got.
fn limit(test: &mut Value, timeout: u64, max_time: &Value) {
    test["operations"][0]["arguments"]["timeoutMS"] = json!(timeout);
    let started = &mut test["expectEvents"][1]["events"][0]["commandStartedEvent"];
    started["command"] = json!({ "ping": 1, "maxTimeMS": max_time });
}

#[test]
fn the_runner_shows_what_the_server_got() {
    for target in SHELLS {
        for (timeout, max_time) in [
            (9_000, json!({ "$$type": ["int", "long"] })),
            (9_000, json!({ "$$lte": 9_000 })),
            (0, json!({ "$$exists": false })),
        ] {
            let mut document = easy();
            limit(&mut document["tests"][0], timeout, &max_time);
            assert_eq!(play(document, target).unwrap(), Verdict::Passed, "{timeout} on {target}");
        }
    }
}

#[test]
fn a_test_that_needs_more_of_a_driver_is_not_applicable() {
    let mut document = easy();
    *operation(&mut document) =
        json!({ "name": "createChangeStream", "object": "database", "arguments": {} });
    let reason = "needs the driver's operation `createChangeStream`".to_owned();
    assert_eq!(play(document, Target::Mio).unwrap(), Verdict::NotApplicable(reason));
}

#[test]
fn the_runner_bites() {
    for target in SHELLS {
        assert_eq!(play(easy(), target).unwrap(), Verdict::Passed, "as it is, on {target}");
    }
    for (index, (spoil, complaint)) in BITES.iter().enumerate() {
        let mut document = easy();
        spoil(&mut document["tests"][0]);
        let Verdict::Failed(what) = play(document, SHELLS[index % SHELLS.len()]).unwrap() else {
            panic!("bite {index}: not noticed")
        };
        assert!(what.contains(complaint), "bite {index}: no {complaint:?} in:\n{what}");
    }
}

const REFUSALS: &[Spoiled] = &[
    (|file| file["schemaVersion"] = json!("2.0"), "schema version 2.0 is unknown"),
    (|file| file["hint"] = json!(1), "hint: unknown field `hint`"),
    (|file| file["tests"][0]["skip"] = json!(1), "unknown field `skip`"),
    (|file| file["createEntities"][0] = json!({ "stream": {} }), "unknown variant `stream`"),
    (|file| file["createEntities"][0]["client"]["color"] = json!(1), "unknown field `color`"),
    (|file| operation(file)["name"] = json!("drop"), "operations.0.name: unknown variant `drop`"),
    (
        |file| operation(file)["arguments"]["slow"] = json!(1),
        "tests.0.operations.0.arguments.slow: unknown field `slow`",
    ),
    (|file| operation(file)["arguments"]["timeoutMS"] = json!(-1), "invalid value: integer `-1`"),
    (
        |file| file["tests"][0]["operations"][2]["arguments"]["timeoutMS"] = json!(1),
        "unknown field `timeoutMS`",
    ),
    (
        |file| operation(file)["expectError"] = json!({ "errorKind": 1 }),
        "unknown field `errorKind`",
    ),
    (
        |file| drop(operation(file).as_object_mut().expect("a map").remove("object")),
        "missing field `object`",
    ),
    (
        |file| file["tests"][0]["expectEvents"][0]["events"][0] = json!({ "lostEvent": {} }),
        "tests.0.expectEvents.0.events.0: unknown event `lostEvent`",
    ),
    (
        |file| file["tests"][0]["expectEvents"][0]["eventType"] = json!("sql"),
        "unknown variant `sql`",
    ),
    // What nothing can be compared with.
    (
        |file| operation(file)["expectResult"] = json!({ "ok": { "$$matchesEntity": 1 } }),
        "operations.0.expectResult.ok: unknown operator {\"$$matchesEntity\":1}",
    ),
    (
        |file| operation(file)["expectResult"] = json!([{ "$$matchAsRoot": { "$$type": "x" } }]),
        "operations.0.expectResult.0.$$matchAsRoot: unknown operator {\"$$type\":\"x\"}",
    ),
    (
        |file| operation(file)["expectResult"] = json!({ "$$exists": true, "ok": 1 }),
        "operations.0.expectResult: the operator $$exists stands alone",
    ),
    (
        |file| {
            let started = json!({ "commandStartedEvent": { "command": { "$$exists": "yes" } } });
            file["tests"][0]["expectEvents"][1]["events"][0] = started;
        },
        "expectEvents.1.events.0.commandStartedEvent.command: unknown operator",
    ),
    (
        |file| {
            message(&mut file["tests"][0])["data"]["serverPort"] =
                json!({ "$$type": ["int", "int64"] });
        },
        "expectLogMessages.0.messages.0.data.serverPort: unknown operator",
    ),
];

fn message(test: &mut Value) -> &mut Value {
    &mut test["expectLogMessages"][0]["messages"][0]
}

fn operation(file: &mut Value) -> &mut Value {
    &mut file["tests"][0]["operations"][0]
}

#[test]
fn what_is_not_known_is_refused() {
    for (index, (spoil, reason)) in REFUSALS.iter().enumerate() {
        let mut document = easy();
        spoil(&mut document);
        let refused = play(document, Target::Tokio).unwrap_err().to_string();
        assert!(refused.contains(reason), "refusal {index}: no {reason:?} in: {refused}");
    }
}

#[test]
fn it_needs_an_endpoint() {
    let server = endpoint();
    let foreign = formats::Foreign::new(&server.uri()).unwrap();
    let place = Place::Server(Box::new(foreign));
    let played = formats::play(&[folder()], &SHELLS, &place).unwrap();
    assert_eq!((played.outcomes.len(), played.unplayed.len()), (0, 8));
    let reason = "played against the mock server alone".to_owned();
    assert!(played.unplayed.iter().all(|it| it.reason == Reason::NotApplicable(reason.clone())));
}

/// On every server, versions count and the fail point is switched off.
// TF-15, TF-16.
#[test]
fn other_files_are_played_against_any_server() {
    let server = endpoint();
    let place = Place::Server(Box::new(formats::Foreign::new(&server.uri()).unwrap()));
    let file = folder().with_file_name("cmap").join("failure-frees-a-permit.yml");
    let mut document = Document::read(&file).unwrap().into_value();
    for target in SHELLS {
        let played = formats::play(&[&file], &[target], &place).unwrap();
        assert_eq!(played.outcomes[0].verdict, Verdict::Passed, "on {target}");
    }
    document["runOn"] = json!([{ "minServerVersion": "99.0" }]);
    let document = Document::of(&file, document);
    let outcomes = formats::cmap::play_document(&document, Target::Mio, &place).unwrap();
    assert!(matches!(outcomes[0].verdict, Verdict::NotApplicable(_)), "{outcomes:?}");
}

fn endpoint() -> cenote_endpoint::Endpoint {
    let settings = cenote_endpoint::Settings::default();
    cenote_endpoint::Endpoint::start(settings, cenote_endpoint::ListenOptions::default())
        .expect("a free port")
}

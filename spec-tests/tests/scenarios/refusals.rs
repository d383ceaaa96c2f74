//! Scenarios that are spoiled so that they are no test any more.

use cenote::formats::Unreadable;
use serde_json::{Value, json};

use crate::{array, play_changed, scenario};

/// Why a document is refused.
fn refusal(document: Value) -> String {
    match play_changed(document) {
        Err(Unreadable::Format { reason, .. }) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// How to spoil a scenario so that it is no test any more, and what the runner must say to that.
type Refusal = (fn(&mut Value), &'static str);

const REFUSALS: &[Refusal] = &[
    (|document| document["skip"] = json!(true), "unknown field `skip`"),
    (|document| document["version"] = json!(2), "version 2 is unknown"),
    (|document| document["style"] = json!("prose"), "unknown variant `prose`"),
    (|document| document["style"] = json!("unit"), "neither failPoint nor runOn"),
    (|document| document["runOn"] = json!([{ "minServerVersion": "new" }]), "not a version"),
    (|document| document["runOn"] = json!([{ "topologies": [] }]), "unknown field `topologies`"),
    (|document| document["ignore"] = json!(["ConnectionLost"]), "unknown event `ConnectionLost`"),
    (
        |document| document["poolOptions"]["waitQueueSize"] = json!(1),
        "waitQueueSize: a pool has no such option",
    ),
    (|document| document["poolOptions"]["maxConnecting"] = json!(0), "maxConnecting is 0"),
    (
        // OP-16
        |document| document["poolOptions"]["backgroundThreadIntervalMS"] = json!(0),
        "backgroundThreadIntervalMS must not be 0",
    ),
    (|document| document["failPoint"]["mode"] = json!("off"), "unknown variant `off`"),
    (|document| document["failPoint"]["mode"] = json!({ "skip": 1 }), "unknown variant `skip`"),
    (
        |document| document["failPoint"]["data"]["failCommands"] = json!(["ping"]),
        "unknown variant `ping`",
    ),
    (
        |document| document["failPoint"]["data"]["blockConnection"] = json!(true),
        "blockConnection and blockTimeMS need each other",
    ),
    (|document| document["failPoint"]["data"]["slow"] = json!(1), "unknown field `slow`"),
    (
        |document| operation(document, json!({ "name": "reset" })),
        "operations.2.name: unknown variant `reset`",
    ),
    (|document| operation(document, json!({ "name": "ready", "hard": 1 })), "unknown field `hard`"),
    (
        |document| operation(document, json!({ "name": "clear", "interrupt": true })),
        "unknown field `interrupt`",
    ),
    (|document| operation(document, json!({ "name": "wait" })), "missing field `ms`"),
    (|document| operation(document, json!({ "name": "close", "thread": 1 })), "not name a thread"),
    (
        |document| operation(document, json!({ "name": "close", "thread": "t" })),
        "operations.2: thread t was not started",
    ),
    (
        |document| operation(document, json!({ "name": "waitForThread", "target": "t" })),
        "operations.2: thread t was not started",
    ),
    (
        |document| operation(document, json!({ "name": "checkIn", "connection": "c" })),
        "operations.2: nothing is checked out as c before",
    ),
    (
        |document| operation(document, json!({ "name": "checkInAgain", "connection": "c" })),
        "operations.2: nothing is checked out as c before",
    ),
    (
        |document| operation(document, json!({ "name": "clear", "serviceOf": "c" })),
        "operations.2: nothing is checked out as c before",
    ),
    (
        |document| operation(document, json!({ "name": "abandon", "target": "t" })),
        "operations.2: thread t was not started",
    ),
    (
        |document| operation(document, json!({ "name": "assertCounts" })),
        "operations.2: there is nothing to count",
    ),
    (
        |document| operation(document, json!({ "name": "assertCounts", "idle": 1 })),
        "unknown field `idle`",
    ),
    (
        |document| {
            let options = json!({ "maxConnecting": 0 });
            operation(document, json!({ "name": "setOptions", "options": options }));
        },
        "operations.2: maxConnecting is 0",
    ),
    (
        |document| operation(document, json!({ "name": "checkOut", "purpose": "fun" })),
        "unknown variant `fun`",
    ),
    (|document| document["notOn"] = json!({ "mio": 5 }), "notOn.mio: invalid type: integer `5`"),
];

fn operation(document: &mut Value, operation: Value) {
    array(document, "operations").push(operation);
}

#[test]
fn what_is_not_known_is_refused() {
    for (index, (spoil, reason)) in REFUSALS.iter().enumerate() {
        let mut document = scenario("hello-error-clears");
        spoil(&mut document);
        let refusal = refusal(document);
        assert!(refusal.contains(reason), "refusal {index}: no {reason:?} in: {refusal}");
    }
}

#[test]
fn threads_are_started_once_and_joined_once() {
    let start = json!({ "name": "start", "target": "t" });
    let join = json!({ "name": "waitForThread", "target": "t" });
    let mut twice = scenario("hello-error-clears");
    operation(&mut twice, start.clone());
    operation(&mut twice, start.clone());
    assert!(refusal(twice).contains("operations.3: thread t is started twice"));

    let mut after = scenario("hello-error-clears");
    operation(&mut after, start);
    operation(&mut after, join);
    operation(&mut after, json!({ "name": "close", "thread": "t" }));
    assert!(refusal(after).contains("operations.4: thread t has been waited for already"));
}

//! Our own pool tests in the format of the official ones, for what those leave open; and proof that
//! the runner notices when a file and the machine disagree.

use std::path::{Path, PathBuf};

use cenote::conform::{Document, Outcome, Place, Target, Unreadable, Verdict, cmap};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/cmap")
}

fn scenario(name: &str) -> Value {
    let path = folder().join(name);
    let ends = ["json", "yml"].map(|end| path.with_extension(end));
    let path = ends.iter().find(|path| path.is_file()).expect("one of the scenarios");
    Document::read(path).expect("it can be read").into_value()
}

fn play(path: &Path) -> Result<Vec<Outcome>, Unreadable> {
    cmap::play(path, Target::Core)
}

fn play_changed(document: Value) -> Result<Vec<Outcome>, Unreadable> {
    cmap::play_document(
        &Document::of(Path::new("changed.json"), document),
        Target::Core,
        &Place::Endpoint,
    )
}

/// The only verdict of a document.
fn verdict(document: Value) -> Verdict {
    let mut outcomes = play_changed(document).expect("still a test");
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0).verdict
}

fn array<'a>(document: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    document[key].as_array_mut().expect("a list")
}

/// Why a document is refused.
fn refusal(document: Value) -> String {
    match play_changed(document) {
        Err(Unreadable::Format { reason, .. }) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn every_scenario_passes_and_passes_again() {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 39);
    for path in paths {
        let outcomes = play(&path).unwrap();
        for outcome in &outcomes {
            assert_eq!(
                outcome.verdict,
                Verdict::Passed,
                "{}: {}",
                path.display(),
                outcome.description
            );
        }
        assert_eq!(play(&path).unwrap(), outcomes);
    }
}

/// A scenario that passes, how to spoil it, and what the runner must say to that.
type Bite = (&'static str, fn(&mut Value), &'static [&'static str]);

const BITES: &[Bite] = &[
    (
        "close-fails-waiters", // wrong order
        |document| array(document, "events").swap(9, 10),
        &["event 9: type: expected \"ConnectionPoolClosed\", saw \"ConnectionCheckOutFailed\""],
    ),
    (
        "close-fails-waiters", // an event that the file lacks in the middle
        |document| drop(array(document, "events").remove(1)),
        &["event 1: type: expected \"ConnectionCheckOutStarted\", saw \"ConnectionPoolReady\""],
    ),
    (
        "close-fails-waiters", // an event that the file lacks at the end
        |document| drop(array(document, "events").pop()),
        &["event 12: expected nothing more, saw {", "ConnectionClosed", "  12: {"],
    ),
    (
        "close-fails-waiters", // an event that never comes
        |document| {
            let event = json!({ "type": "ConnectionPoolReady" });
            array(document, "events").push(event);
        },
        &["event 13: expected {\"type\":\"ConnectionPoolReady\"}, but nothing more came"],
    ),
    (
        "close-fails-waiters", // wrong reason
        |document| document["events"][8]["reason"] = json!("timeout"),
        &["event 8: reason: expected \"timeout\", saw \"poolClosed\""],
    ),
    (
        "interrupt-in-use", // a service where there is none
        |document| document["events"][5]["serviceId"] = json!(42),
        &["event 5: serviceId: expected any value, saw nothing"],
    ),
    (
        "close-fails-waiters", // another connection
        |document| document["events"][3]["connectionId"] = json!(2),
        &["event 3: connectionId: expected 2, saw 1"],
    ),
    (
        "close-fails-waiters", // an option that was not set
        |document| document["events"][0]["options"]["minPoolSize"] = json!(42),
        &["event 0: options: minPoolSize: expected any value, saw nothing"],
    ),
    (
        "close-fails-waiters", // wrong message
        |document| document["error"]["message"] = json!("Attempted"),
        &["error: message: expected \"Attempted\", saw \"Attempted to check out a connection"],
    ),
    (
        "close-fails-waiters", // wrong type of error
        |document| document["error"] = json!({ "type": "PoolClearedError" }),
        &["error: type: expected \"PoolClearedError\", saw \"PoolClosedError\""],
    ),
    (
        "close-fails-waiters", // wrong address
        |document| document["error"]["address"] = json!("elsewhere:27017"),
        &["error: address: expected \"elsewhere:27017\", saw \"localhost:27017\""],
    ),
    (
        "close-fails-waiters", // an error that is not expected
        |document| document["error"] = Value::Null,
        &["expected no error, saw PoolClosedError: Attempted to check out"],
    ),
    (
        "close-fails-waiters", // an error of a thread that nobody waits for
        |document| drop(array(document, "operations").pop()),
        &["expected an error {", "saw none"],
    ),
    (
        "interrupt-in-use", // an error that never comes
        |document| document["error"] = json!({}),
        &["expected an error {}, saw none"],
    ),
    (
        "close-fails-waiters", // waiting for too many events; those that are ignored count
        |document| {
            document["ignore"] = json!(["ConnectionCheckOutStarted"]);
            document["operations"][6]["count"] = json!(4);
        },
        &[
            "the main thread waited 10000 ms for ConnectionCheckOutStarted 4 times",
            "saw it 3 times",
        ],
    ),
    (
        "overload-does-not-clear", // waiting for not long enough
        |document| document["operations"][4]["timeout"] = json!(0),
        &["the main thread waited 0 ms for ConnectionCreated 2 times, but saw it 1 times"],
    ),
    (
        "hello-error-clears", // a fail point for somebody else
        |document| document["failPoint"]["data"]["appName"] = json!("well"),
        &["expected an error", "saw none", "event 3: type: expected \"ConnectionPoolCleared\""],
    ),
    (
        "hello-error-clears", // a fail point that is used up
        |document| document["failPoint"]["mode"] = json!({ "times": 0 }),
        &["expected an error", "saw none"],
    ),
    (
        "interrupt-in-use", // an operation that cannot be done
        |document| document["operations"][3] = json!({ "name": "checkIn", "connection": "held" }),
        &["nothing is checked out as held at present"],
    ),
    (
        "counts", // another count
        |document| document["operations"][3]["available"] = json!(1),
        &["expected available to be 1, but it is 2: ready"],
    ),
    (
        "overloaded", // a label too many, or too few
        |document| drop(document["error"]["labels"].as_array_mut().expect("labels").pop()),
        &["error: labels: there are more"],
    ),
    (
        "overloaded", // whether it may be tried again
        |document| document["error"]["retryable"] = json!(false),
        &["error: retryable: expected false, saw true"],
    ),
    (
        "abandoned", // nobody who could go away
        |document| document["operations"][10]["target"] = json!("queued"),
        &["queued waits for no connection at present"],
    ),
    (
        "services", // no services
        |document| {
            drop(document["poolOptions"].as_object_mut().expect("a map").remove("loadBalanced"));
        },
        &["the connection has no service"],
    ),
    (
        "no-limit", // a check-out that is never served
        |document| document["poolOptions"]["maxPoolSize"] = json!(2),
        &["the main thread waited 600000 ms for a connection, but had no outcome"],
    ),
];

#[test]
fn the_runner_bites() {
    for (index, (name, spoil, complaints)) in BITES.iter().enumerate() {
        let mut document = scenario(name);
        assert_eq!(verdict(document.clone()), Verdict::Passed, "{name} passes as it is");
        spoil(&mut document);
        let Verdict::Failed(verdict) = verdict(document) else {
            panic!("bite {index}, {name}: not noticed")
        };
        for complaint in *complaints {
            assert!(verdict.contains(complaint), "bite {index}: no {complaint:?} in:\n{verdict}");
        }
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
    (|document| document["error"] = json!({ "code": 1 }), "error.code: unknown key"),
    (|document| document["events"][0]["host"] = json!(42), "events.0.host: unknown key"),
    (
        |document| document["events"][0]["type"] = json!("Lost"),
        "events.0.type: unknown event `Lost`",
    ),
    (|document| document["events"][0] = json!({}), "events.0: missing field `type`"),
    (
        |document| document["poolOptions"]["waitQueueSize"] = json!(1),
        "unknown field `waitQueueSize`",
    ),
    (|document| document["poolOptions"]["maxConnecting"] = json!(0), "maxConnecting is 0"),
    (
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
    (|document| operation(document, json!({ "name": "reset" })), "unknown variant `reset`"),
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
    (|document| document["notOn"] = json!({ "moon": "far" }), "unknown variant `moon`"),
    (|document| document["notOn"] = json!({ "mio": "" }), "for each target where not"),
    (
        |document| document["notOn"] = json!({ "core": "a", "tokio": "b", "mio": "c" }),
        "it is played somewhere",
    ),
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

#[test]
fn a_file_that_cannot_be_read_says_which() {
    let missing = play(&folder().join("missing.json")).unwrap_err();
    assert!(matches!(missing, Unreadable::Io { .. }));
    assert!(missing.to_string().contains("missing.json"));

    let no_json = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(matches!(play(&no_json).unwrap_err(), Unreadable::Json { .. }));
}

/// Every pool takes these options, which the file wants to be refused; or refuses them otherwise.
#[test]
fn options_have_to_be_refused_for_the_reason_that_is_given() {
    for (options, complaint) in [
        (json!({ "maxPoolSize": 2 }), "saw a pool"),
        (json!({ "maxConnecting": 0 }), "expected to be refused with \"minPoolSize\", saw"),
    ] {
        let path = folder().join("options-minimum-above-maximum.yml");
        let mut document = Document::read(&path).unwrap().into_value();
        document["poolOptions"] = options;
        for target in Target::ALL {
            let document = Document::of(&path, document.clone());
            let outcomes = cmap::play_document(&document, target, &Place::Endpoint).unwrap();
            let Verdict::Failed(what) = &outcomes[0].verdict else { panic!("not noticed") };
            assert!(what.contains(complaint), "{what}");
        }
    }
}

//! Scenarios that are spoiled, and what the runner says to each.

use cenote::formats::Verdict;
use serde_json::{Value, json};

use crate::{array, scenario, verdict};

/// A scenario that passes, how to spoil it, and what the runner must say to that.
pub(crate) type Bite = (&'static str, fn(&mut Value), &'static [&'static str]);

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
        "close-fails-waiters", // an error of a thread that is not waited for
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
        "hello-error-clears", // a fail point for another application
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
        &["expected available to be 1, but it is 2: 2 connections"],
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
        "abandoned", // a thread that does not wait
        |document| document["operations"][10]["target"] = json!("queued"),
        &["queued does not wait for a connection"],
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

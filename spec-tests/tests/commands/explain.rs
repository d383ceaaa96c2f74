//! `cenote explain`, of events and of traces.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::{good, refused};

fn written(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a folder of our own");
    path_text(&path)
}

fn path_text(path: &Path) -> String {
    path.to_str().expect("a text").to_owned()
}

/// An incident as a trace, and the events that its pool told.
fn incident(folder: &TempDir, case: &str) -> [String; 2] {
    let trace = path_text(&folder.path().join(format!("{case}.bson")));
    good(&["record", &trace, "--case", case]);
    let events = good(&["replay", &trace, "--json", "--events"]);
    [trace, written(folder, &format!("{case}.jsonl"), &events)]
}

/// The causes that an explanation names, without the times of day of a trace.
fn causes(file: &str) -> Vec<String> {
    let found: Value = serde_json::from_str(&good(&["explain", file, "--json"])).expect("JSON");
    let groups = found["groups"].as_array().expect("a list");
    let failed = groups.iter().filter(|group| group["outcome"] == "failed");
    failed.filter_map(|group| group["cause"].as_str().map(str::to_owned)).collect()
}

#[test]
fn events_name_the_causes_that_the_trace_names() {
    let folder = tempdir().unwrap();
    for (case, cause) in [
        ("too-small", "more work than connections: 2,724 requests a second then"),
        ("leak", "a leak: 9 of 10 connections were checked out since"),
        ("slow-server", "slow uses: half of them took more than 254 ms then, 4.04 ms otherwise"),
        ("storm", "many new connections: "),
        ("cleared", "the pool was cleared at "),
    ] {
        for file in incident(&folder, case) {
            let named = causes(&file);
            assert!(named.iter().any(|it| it.starts_with(cause)), "{file}: {named:?}");
        }
    }
}

#[test]
fn events_tell_the_same_numbers_as_the_trace() {
    let folder = tempdir().unwrap();
    let [trace, events] = incident(&folder, "too-small").map(|file| {
        let found: Value =
            serde_json::from_str(&good(&["explain", &file, "--json"])).expect("JSON");
        let requests = &found["requests"];
        let served = ["servedAtOnce", "servedAfterWait"].map(|key| requests[key].as_u64());
        let served: u64 = served.into_iter().flatten().sum();
        let times = ["waits", "uses"].map(|key| found[key].to_string());
        (served, requests["failed"].as_u64(), times)
    });
    assert_eq!((trace.0, trace.1), (events.0, events.1));
    let text = good(&["explain", &path_text(&folder.path().join("too-small.jsonl"))]);
    assert!(text.starts_with("trace      db.example.com:27017, as its events tell: "), "{text}");
    assert!(text.contains("events do not say which place in the program asked"), "{text}");
    assert_eq!(trace.2, events.2);
}

/// Threads of other drivers tell of a check-in after the check-out that follows it, and out of order.
const UNTIDY: &str = r#"
{"at":100,"type":"ConnectionCheckOutStarted","address":"a:1","more":{"keys":[1]}}
{"at":100.1,"type":"ConnectionCheckedOut","address":"a:1","connectionId":7,"durationMS":100}
{"at":100.2,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":100.5,"type":"ConnectionCheckedOut","address":"a:1","connectionId":7,"durationMS":300}
{"at":100.4,"type":"ConnectionCheckedIn","address":"a:1","connectionId":7}
{"at":100.6,"type":"ConnectionCheckOutStarted","address":"b:1"}
{"at":101.6,"type":"ConnectionCheckOutFailed","address":"b:1","reason":"connectionError","durationMS":1000}
"#;

#[test]
fn events_of_several_pools_out_of_order_and_from_the_middle() {
    let folder = tempdir().unwrap();
    let file = written(&folder, "events.jsonl", UNTIDY);
    let text = good(&["explain", &file]);
    let (first, second) =
        text.split_once("\n\n\n").or(text.split_once("first request\n\n")).expect("two");
    assert!(first.contains("2: 0 served at once, 2 after a wait, 0 failed"), "{text}");
    assert!(first.contains("uses       400 ms at the median"), "{text}");
    assert!(second.starts_with("trace      b:1, as its events tell: 2 events"), "{text}");
    assert!(second.contains("1 not established: the events do not say why, up to 1 s"), "{text}");
    let open: Value = good(&["explain", &file, "--json"])
        .lines()
        .next()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .expect("a line for each pool");
    assert_eq!(open["address"], "a:1");
}

#[test]
fn what_cannot_be_explained_is_said() {
    let folder = tempdir().unwrap();
    let events = |text: &str| written(&folder, "bad.jsonl", text);
    let started = r#"{"type":"ConnectionCheckOutStarted","address":"a:1"}"#;
    refused(&["explain", &events(started)], 2, "line 1: this event has no time: `at`, in seconds");
    refused(&["explain", &events("\n\n")], 2, "there are no events");
    refused(&["explain", &events("hello\n")], 2, "line 1: this is no event");
    let file = events(UNTIDY);
    refused(&["explain", &file, "--waiter", "1"], 2, "--waiter is for a trace");
    refused(&["explain", "absent.jsonl"], 2, "absent.jsonl: ");
}

#[test]
fn a_trace_is_explained_as_replay_does() {
    let folder = tempdir().unwrap();
    let [trace, _] = incident(&folder, "leak");
    assert_eq!(good(&["explain", &trace]), good(&["replay", &trace, "--explain"]));
    let one = ["explain", &trace, "--waiter", "1", "--to", "1"];
    assert!(good(&one).starts_with("w1 "), "{}", good(&one));
    assert_eq!(good(&["explain", &trace, "--leaks"]), good(&["replay", &trace, "--leaks"]));
}

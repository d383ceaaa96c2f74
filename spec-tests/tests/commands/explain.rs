//! `cenote explain`, of events and of traces.

use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::{command, good, refused, text};

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
    assert!(text.starts_with("events     db.example.com:27017, as its events tell: "), "{text}");
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
    let (first, second) = text.split_once("\n\nevents     ").expect("two pools");
    assert!(first.contains("2: 0 served at once, 2 after a wait, 0 failed"), "{text}");
    assert!(first.contains("uses       400 ms at the median"), "{text}");
    assert!(second.starts_with("b:1, as its events tell: 2 events"), "{text}");
    assert!(second.contains("1 not established: the events do not say why, up to 1 s"), "{text}");
    let open: Value = good(&["explain", &file, "--json"])
        .lines()
        .next()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .expect("a line for each pool");
    assert_eq!(open["address"], "a:1");
}

#[test]
fn the_pools_of_events_are_drawn() {
    let folder = tempdir().unwrap();
    let (file, page) = (written(&folder, "events.jsonl", UNTIDY), folder.path().join("page.html"));
    let told = good(&["draw", &file, "--html", &path_text(&page)]);
    assert!(told.contains(" events drawn in "), "{told}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("pool of a:1") && page.contains("pool of b:1"));
}

/// Of the pools of one file, those with the most requests fill the screen, or the page.
#[test]
fn the_busiest_of_many_pools_are_explained_and_drawn() {
    let folder = tempdir().unwrap();
    let asked = |pool: u32| {
        let line =
            format!(r#"{{"at":0,"type":"ConnectionCheckOutStarted","address":"a:{pool:02}"}}"#);
        format!("{line}\n").repeat(if pool == 7 { 1 } else { 2 })
    };
    let events: String = (0..21).map(asked).collect();
    let (file, page) = (written(&folder, "events.jsonl", &events), folder.path().join("page.html"));
    let text = good(&["explain", &file]);
    assert!(
        text.ends_with("\n\n1 other pool with fewer requests: --all explains each\n"),
        "{text}"
    );
    assert!(!text.contains(" a:07, ") && text.contains(" a:20, "), "{text}");
    assert!(good(&["explain", &file, "--all"]).contains(" a:07, "));
    let told = good(&["draw", &file, "--html", &path_text(&page)]);
    assert!(told.starts_with("1 other pool with fewer requests not drawn: "), "{told}");
    let page = fs::read_to_string(page).unwrap();
    assert!(!page.contains("pool of a:07") && page.contains("pool of a:20"));
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
    refused(&["draw", &file, "--html", &file], 2, "the events and --html are one file");
    let packed = ["draw", &file, "--html", "page.html", "--perfetto", "trace.json"];
    refused(&packed, 2, "--perfetto is for a trace");
}

#[test]
fn standard_input_is_read_as_a_file_is() {
    let folder = tempdir().unwrap();
    let [trace, events] = incident(&folder, "leak");
    for file in [&trace, &events] {
        let input = File::open(file).unwrap();
        let output = command(&["explain", "-"]).stdin(input).output().unwrap();
        assert_eq!(text(&output.stdout), good(&["explain", file]), "{}", text(&output.stderr));
    }
    refused(
        &["check", &trace],
        2,
        "this is a trace: check what `cenote replay TRACE --json --events`",
    );
}

const CREATED: &str = r#"{"at":0,"type":"ConnectionPoolCreated","address":"a:1","options":{"maxPoolSize":1}}
{"at":0,"type":"ConnectionPoolReady","address":"a:1"}
{"at":0,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":0,"type":"ConnectionCreated","address":"a:1","connectionId":1}
{"at":0.1,"type":"ConnectionReady","address":"a:1","connectionId":1,"durationMS":100}
{"at":0.1,"type":"ConnectionCheckedOut","address":"a:1","connectionId":1,"durationMS":100}
"#;

fn explained(events: &str) -> String {
    let folder = tempdir().expect("a folder");
    good(&["explain", &written(&folder, "events.jsonl", events)])
}

#[test]
fn a_connection_that_was_idle_and_not_usable_is_waited_for() {
    let text = explained(&format!(
        r#"{CREATED}{{"at":1,"type":"ConnectionCheckedIn","address":"a:1","connectionId":1}}
{{"at":2,"type":"ConnectionCheckOutStarted","address":"a:1"}}
{{"at":2,"type":"ConnectionClosed","address":"a:1","connectionId":1,"reason":"idle"}}
{{"at":2,"type":"ConnectionCreated","address":"a:1","connectionId":2}}
{{"at":4,"type":"ConnectionReady","address":"a:1","connectionId":2,"durationMS":2000}}
{{"at":4,"type":"ConnectionCheckedOut","address":"a:1","connectionId":2,"durationMS":2000}}
"#
    ));
    assert!(text.contains("2: 0 served at once, 2 after a wait, 0 failed"), "{text}");
    assert!(text.contains("2 establishment of its own connection, up to 2 s"), "{text}");
}

/// Of w2, whose caller gave up, its driver tells no end; w4 waits still.
#[test]
fn requests_without_an_end_do_not_wait_for_ever() {
    let folder = tempdir().unwrap();
    let events = format!(
        r#"{CREATED}{{"at":0.2,"type":"ConnectionCheckOutStarted","address":"a:1"}}
{{"at":1,"type":"ConnectionCheckedIn","address":"a:1","connectionId":1}}
{{"at":2,"type":"ConnectionCheckOutStarted","address":"a:1"}}
{{"at":2,"type":"ConnectionCheckedOut","address":"a:1","connectionId":1,"durationMS":0}}
{{"at":3,"type":"ConnectionCheckOutStarted","address":"a:1"}}
{{"at":4,"type":"ConnectionPoolReady","address":"a:1"}}
"#
    );
    let file = written(&folder, "events.jsonl", &events);
    let text = good(&["explain", &file]);
    let told =
        "4: 1 served at once, 1 after a wait, 0 failed, 1 waiting at the end; at most 1 waited";
    assert!(text.contains(told) && text.contains("1 check-out has no end in the events"), "{text}");
    let told = "w4       1 s       3.000 s       waits         maxPoolSize: 1 of 1 in use\n";
    assert!(text.contains(told) && !text.contains("w2 "), "{text}");
    let text = good(&["predict", &file, "--what-if", "maxPoolSize=2"]);
    assert!(text.contains("as recorded         2          1       0"), "{text}");
    assert!(text.contains("no end     1 check-out has no end in the events"), "{text}");
}

#[test]
fn what_an_error_tells_is_not_lost_behind_a_clear() {
    let cleared = format!(
        r#"{CREATED}{{"at":1,"type":"ConnectionPoolCleared","address":"a:1","interruptInUseConnections":true}}
{{"at":1.5,"type":"ConnectionCheckOutStarted","address":"a:1"}}
{{"at":1.5,"type":"ConnectionCheckOutFailed","address":"a:1","reason":"connectionError","durationMS":0,"error":"ERROR"}}
"#
    );
    let text = explained(&cleared.replace("ERROR", r"pool was cleared: \u001b[2Jreset by peer"));
    assert!(text.contains("at once: the pool was paused (pool was cleared: "), "{text}");
    assert!(text.contains("reset by peer") && !text.contains('\u{1b}'), "{text}");
    let text = explained(&cleared.replace("ERROR", "connect ECONNREFUSED"));
    assert!(text.contains("1 not established: connect ECONNREFUSED"), "{text}");
    let text = explained(&cleared.replace("connectionError", "of another kind"));
    assert!(text.contains("1 for a reason that the events do not say"), "{text}");
    let folder = tempdir().unwrap();
    let file = written(&folder, "events.jsonl", &cleared);
    assert!(
        good(&["explain", &file, "--clear", "1"]).contains("1 interrupted (c1 of w1 after 900 ms)")
    );
}

#[test]
fn a_stream_that_begins_late_or_ends_early_is_explained_as_far_as_it_goes() {
    let (_, late) = CREATED.split_once("ConnectionPoolReady").expect("it is there");
    let (_, late) = late.split_once('\n').expect("a line");
    let text = explained(&format!(
        r#"{late}{{"at":1,"type":"ConnectionCheckOutStarted","address":"a:1"}}
{{"at":2,"type":"ConnectionCheckOutFailed","address":"a:1","reason":"timeout","durationMS":1000}}
{{"at":2,"type":"Connect"#
    ));
    assert!(text.contains("they do not say maxPoolSize"), "{text}");
    assert!(text.contains("1 timed out, maxPoolSize: 1 of 1 in use, up to 1 s"), "{text}");
}

#[test]
fn two_pools_of_one_address_are_told_apart_or_refused() {
    let folder = tempdir().unwrap();
    let twice = written(&folder, "twice.jsonl", &format!("{CREATED}{CREATED}"));
    refused(&["explain", &twice], 2, "line 7: a second pool of this address is created");
    let closed = r#"{"at":1,"type":"ConnectionPoolClosed","address":"a:1"}"#;
    let text = explained(&format!("{CREATED}{closed}\n{CREATED}"));
    assert!(text.contains("2: 0 served at once, 2 after a wait, 0 failed"), "{text}");
    let (first, second) =
        (written(&folder, "a.jsonl", CREATED), written(&folder, "b.jsonl", CREATED));
    refused(&["explain", &first, &second], 2, "events are explained one file at a time");
}

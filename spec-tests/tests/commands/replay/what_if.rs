//! What other options would have done, and advice.

use serde_json::Value;

use super::{Folder, flat, good, refused, text};

fn incident(folder: &Folder, case: &str) -> String {
    text(&folder.record("incident.bson", &format!("--case {case}"))).to_owned()
}

/// The row of a table that begins so.
fn row<'a>(told: &'a str, name: &str) -> Vec<&'a str> {
    let row = told.lines().find_map(|line| line.strip_prefix(name));
    row.unwrap_or_else(|| panic!("{name}: {told}")).split_whitespace().collect()
}

#[test]
fn a_larger_pool_serves_more() {
    let folder = Folder::new();
    let trace = incident(&folder, "too-small");
    let told = good(&["predict", &trace, "--what-if", "maxPoolSize=10,20; maxConnecting=2,8"]);
    assert!(
        told.contains("callers    come whatever happens to others (an open loop), which fits"),
        "{told}"
    );
    let timed_out =
        |name: &str| row(&told, name)[1].replace(',', "").parse::<u64>().expect("a number");
    assert!(timed_out("as recorded") > 1_000, "{told}");
    // Without a change, what was recorded.
    assert_eq!(row(&told, "as recorded"), row(&told, "maxPoolSize=10 maxConnecting=2"));
    assert_eq!(timed_out("maxPoolSize=20 maxConnecting=8"), 0, "{told}");
    assert_eq!(told.lines().filter(|line| line.starts_with("maxPoolSize=")).count(), 4, "{told}");
    // So do the events that its pool told.
    let events = folder.write("events.jsonl", &good(&["replay", &trace, "--json", "--events"]));
    let by_events =
        good(&["predict", text(&events), "--what-if", "maxPoolSize=10,20; maxConnecting=2,8"]);
    assert!(by_events.starts_with("events     db.example.com:27017: 20,683 requests"), "{told}");
    // How long requests may wait is seen from those that timed out.
    assert!(by_events.contains("waitQueueTimeoutMS 200, "), "{by_events}");
    let rows = |told: &str| told.split_once("as recorded").expect("a table").1.to_owned();
    assert_eq!(rows(&by_events), rows(&told));
}

/// From the middle of a run, without an end; and all that it tells of the options.
#[test]
fn events_tell_what_they_know() {
    let folder = Folder::new();
    let events = r#"{"at":7,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":7.5,"type":"ConnectionCheckedOut","address":"a:1","connectionId":3,"durationMS":500}
{"at":8,"type":"ConnectionCheckedIn","address":"a:1","connectionId":3}
"#;
    let path = folder.write("events.jsonl", events);
    let told = good(&["predict", text(&path), "--what-if", "maxPoolSize=2"]);
    assert!(told.contains("options    maxPoolSize 1, "), "{told}");
    assert!(told.contains("\nassumed    20 ms to establish a connection: none is seen"), "{told}");
    let options =
        r#"{"maxPoolSize":0,"minPoolSize":2,"maxConnecting":5,"waitQueueTimeoutMS":1500.0}"#;
    let created = r#"{"at":6,"type":"ConnectionPoolCreated","address":"a:1","options":OPTIONS}"#;
    let created = created.replace("OPTIONS", options);
    let path = folder.write("events.jsonl", &format!("{created}\n{events}"));
    let told = flat(&good(&["predict", text(&path), "--what-if", "maxPoolSize=2"]));
    let options =
        "maxPoolSize unlimited, minPoolSize 2, maxConnecting 5, waitQueueTimeoutMS 1500, ";
    assert!(told.contains(options), "{told}");
    refused(
        &["predict", text(&path), "--what-if", "maxPoolSize=2", "--html", "page.html"],
        2,
        "--html draws a trace, and these are events",
    );
    let none = folder.write("none.jsonl", &created);
    let said = "there are no requests, so nothing can be predicted";
    refused(&["predict", text(&none), "--what-if", "maxPoolSize=2"], 2, said);
}

/// Uses that take no time by a clock of whole milliseconds, drivers that do not tell that a pool is ready, callers that fail
/// at once for ever, a clock of nanoseconds, and two pools.
#[test]
fn events_of_any_listener_are_predicted() {
    let folder = Folder::new();
    let pool =
        r#"{"at":0,"type":"ConnectionPoolCreated","address":"a:1","options":{"maxPoolSize":2}}"#;
    let used = r#"{"at":1,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":1,"type":"ConnectionCreated","address":"a:1","connectionId":1}
{"at":1,"type":"ConnectionReady","address":"a:1","connectionId":1,"durationMS":0}
{"at":1,"type":"ConnectionCheckedOut","address":"a:1","connectionId":1,"durationMS":0}
{"at":1,"type":"ConnectionCheckedIn","address":"a:1","connectionId":1}
"#;
    let cleared = r#"{"at":1,"type":"ConnectionPoolCleared","address":"a:1"}
{"at":1.5,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":1.5,"type":"ConnectionCheckOutFailed","address":"a:1","reason":"connectionError","durationMS":0}
{"at":3,"type":"ConnectionPoolReady","address":"a:1"}
"#;
    let predicted = |events: &str, callers: &str| {
        let path = folder.write("events.jsonl", events);
        good(&["predict", text(&path), "--what-if", "maxPoolSize=3", "--callers", callers])
    };
    let told = predicted(&format!("{pool}\n{used}"), "open");
    assert_eq!(row(&told, "maxPoolSize=3")[..3], ["1", "0", "0"], "{told}");
    let failed = predicted(&format!("{pool}\n{used}{cleared}"), "closed");
    assert_ne!(row(&failed, "maxPoolSize=3")[2], "0", "{failed}");
    let two = format!("{pool}\n{used}{}", used.replace("a:1", "b:1"));
    assert!(predicted(&two, "open").contains("\nothers     1 other pool in these events"));
    let nanoseconds = used.replace(r#""at":1,"#, r#""at":1700000000000000000,"#);
    let path = folder.write("late.jsonl", &format!("{pool}\n{nanoseconds}"));
    let said = "line 2: `at` is in seconds, and this is 1.7e18 s after the first event";
    refused(&["predict", text(&path), "--what-if", "maxPoolSize=3"], 2, said);
}

#[test]
fn the_other_loop_can_be_assumed() {
    let folder = Folder::new();
    let trace = incident(&folder, "too-small");
    let told = ["predict", &trace, "--what-if", "maxPoolSize=20", "--callers", "closed"];
    let told = flat(&good(&told));
    assert!(told.contains("that come again some time after their last request ended"), "{told}");
    assert!(told.contains("as assumed, although the other fits better"), "{told}");
}

#[test]
fn predictions_as_json() {
    let folder = Folder::new();
    let trace = incident(&folder, "too-small");
    let told = good(&["predict", &trace, "--what-if", "maxPoolSize=5,40", "--json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["options"]["maxPoolSize"], 10);
    assert_eq!(told["callers"]["assumed"], "open");
    assert_eq!(told["server"], Value::Null);
    let predictions = told["predictions"].as_array().expect("two");
    assert_eq!(predictions.len(), 2);
    let of = |place: usize| &predictions[place]["draws"][0];
    assert_eq!(predictions[0]["options"]["maxPoolSize"], 5);
    assert!(of(0)["timedOut"].as_u64() > told["recorded"]["timedOut"].as_u64());
    assert_eq!(of(1)["timedOut"], 0);
    assert!(of(1)["waitMS"]["p99"].as_f64() < Some(100.0));
}

#[test]
fn a_picture() {
    let folder = Folder::new();
    let trace = incident(&folder, "too-small");
    let html = folder.path("both.html");
    let told = good(&["predict", &trace, "--what-if", "maxPoolSize=40", "--html", text(&html)]);
    assert!(told.contains("drawn beside the trace in "), "{told}");
    let html = std::fs::read_to_string(html).expect("a page");
    assert!(html.contains("maxPoolSize=40") && html.contains("incident.bson"));
}

/// Too many tasks.
const BUSY: &str = "--steps 3000 --connections 5 --tasks 40 --failure-every 500";

#[test]
fn advice_names_a_pool() {
    let folder = Folder::new();
    let trace = folder.record("traffic.bson", BUSY);
    let told = good(&["predict", text(&trace), "--advise", "p50 wait < 1 ms"]);
    assert!(told.contains("goal       p50 wait < 1 ms, not kept as recorded: "), "{told}");
    let size = |name: &str| row(&told, name)[0].parse::<u32>().expect("a size");
    assert!(size("the trace") > 5, "{told}");
    assert!(size("busiest minute × 1.5") > size("the trace"), "{told}");
    let json = good(&["predict", text(&trace), "--advise", "p50 wait < 1 ms", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["goal"], &json["isKept"]), (&"p50 wait < 1 ms".into(), &false.into()));
    assert_eq!(json["advice"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["advice"][0]["options"]["maxPoolSize"], size("the trace"));
}

/// In the first request the connection has to be established.
#[test]
fn no_pool_keeps_an_impossible_goal() {
    let folder = Folder::new();
    let trace = folder.record("traffic.bson", BUSY);
    let told = good(&["predict", text(&trace), "--advise", "max wait < 1 us"]);
    assert_eq!(row(&told, "the trace"), ["no", "pool"]);
    assert!(told.contains("\nthe trace: with as many connections as are asked for"), "{told}");
}

/// Neither leaks nor a server that is slow for a while look like a server that is busy.
#[test]
fn other_incidents_are_no_limit_of_the_server() {
    for case in ["leak", "slow-server"] {
        let folder = Folder::new();
        let trace = incident(&folder, case);
        let told = good(&["predict", &trace, "--what-if", "maxPoolSize=40"]);
        assert!(!told.contains("\nserver "), "{case}: {told}");
    }
}

/// Nor is one more connection.
#[test]
fn no_size_is_a_cure_of_a_leak() {
    let folder = Folder::new();
    let trace = incident(&folder, "leak");
    let leaks = "leaks 9 connections look leaked (cenote explain --leaks lists them): one use in ";
    for arguments in [["--what-if", "maxPoolSize=40"], ["--advise", "time-outs < 1 %"]] {
        let told = flat(&good(&[&["predict", trace.as_str()][..], &arguments].concat()));
        assert!(told.contains(leaks) && told.contains(", and no size cures that "), "{told}");
    }
    let told = good(&["predict", &trace, "--advise", "time-outs < 1 %"]);
    assert!(
        told.ends_with("goal       time-outs < 1 %: no advice, since no size cures a leak\n"),
        "{told}"
    );
    let every = folder.record("every.bson", "--leak-every 3 --connections 10 --steps 20000");
    let told = good(&["predict", text(&every), "--advise", "time-outs < 1 %"]);
    assert!(told.contains("leaks      10 connections look leaked"), "{told}");
    let told = good(&["predict", &trace, "--advise", "time-outs < 1 %", "--json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((&told["leaked"], &told["advice"]), (&9.into(), &Value::Null));
}

#[test]
fn what_cannot_be_predicted() {
    let folder = Folder::new();
    let trace = incident(&folder, "too-small");
    for (arguments, said) in [
        (
            &["--what-if", "poolSize=4"][..],
            "`poolSize` cannot be changed; these can: maxPoolSize, minPoolSize",
        ),
        (
            &["--what-if", "maxConnecting=0"],
            "maxConnecting=0: maxConnecting is 0, so nothing could ever connect",
        ),
        (&["--advise", "fast"], "`fast` is no goal: write `p99 wait < 5 ms`"),
        (
            &["--what-if", "maxPoolSize=4", "--callers", "both"],
            "`both` is neither `open` nor `closed`",
        ),
        (&["--what-if", "maxPoolSize=4", "--advise", "max wait < 1 s"], "cannot be used with"),
        (
            &["--what-if", "maxPoolSize=4,5", "--html", "page.html"],
            "--html shows one prediction beside the trace, not 2: give each option of --what-if one value",
        ),
    ] {
        refused(&[&["predict", &trace][..], arguments].concat(), 2, said);
    }
    let empty = folder.record("empty.bson", "--steps 0");
    let said = "there are no requests, so nothing can be predicted";
    refused(&["predict", text(&empty), "--what-if", "maxPoolSize=4"], 2, said);
}

//! `cenote explain` on one trace for each kind of incident.

use serde_json::Value;

use super::{Folder, command, flat, good, refused, text};

/// What `cenote explain` says of the trace of a case, with these arguments.
fn told(case: &str, arguments: &[&str]) -> String {
    of_case("explain", case, arguments)
}

fn of_case(command: &str, case: &str, arguments: &[&str]) -> String {
    let folder = Folder::new();
    let trace = folder.record("trace.bson", &format!("--case {case}"));
    good(&[&[command, text(&trace)], arguments].concat())
}

/// As many of several stories as a screen has room for.
#[test]
fn several_waits_and_clears_are_a_screenful() {
    let waiters: Vec<_> =
        (12600..12620).flat_map(|n| ["--waiter".to_owned(), n.to_string()]).collect();
    let mut arguments: Vec<_> = waiters.iter().map(String::as_str).collect();
    let some = told("too-small", &arguments);
    assert!(some.lines().count() <= 41, "{some}");
    let last = some.lines().last().expect("a line");
    assert!(last.ends_with(" of 20 requests are left out: --all shows them"), "{last}");
    arguments.push("--all");
    let all = told("too-small", &arguments);
    assert!(!all.contains("left out") && all.lines().count() > 60, "{all}");
    let clears = told("cleared", &["--clear", "1", "--clear", "1"]);
    assert!(clears.lines().count() <= 41 && !clears.contains("left out"), "{clears}");
}

#[test]
fn the_first_lines_say_what_happened_and_why() {
    for (case, expected) in [
        (
            "too-small",
            &[
                "by cenote 0.1.0: 40,667 steps, 15 s from 2026-01-01 03:07:00 UTC",
                "requests 20,683: 11,950 served at once, 6,536 after a wait, 1,659 failed, 538 waiting \
                 at the end; at most 575 waited at once",
                "failed 1,659 timed out, maxPoolSize: 10 of 10 in use, up to 200 ms; 03:07:12.240 to \
                 03:07:14.969",
                "-> more work than connections: 2,724 requests a second then, 1,055 otherwise; half of \
                 the uses took more than 4.12 ms then, 4.04 ms otherwise",
            ][..],
        ),
        (
            "leak",
            &[
                " of 10 connections were checked out since 03:07:0",
                "-> a leak: ",
                " connections not checked in, held for longer than any use that ended: ",
                "; checked out at src/report.rs:88:27 (",
            ],
        ),
        (
            "storm",
            &[
                "timed out, maxConnecting: 2 of 2 being established, 58 of 200 connections",
                "-> many new connections: 29 were created then, half of them took more than 72.6 ms",
                "so maxConnecting=2 allows 28 a second",
            ],
        ),
        (
            "slow-server",
            &[
                "timed out, maxPoolSize: 10 of 10 in use, up to 200 ms; 03:07:10.217 to 03:07:13.028",
                "-> slow uses: half of them took more than 254 ms then, 4.04 ms otherwise;",
            ],
        ),
        (
            "cleared",
            &[
                "failed 3,441 at once: the pool was paused (hello: timed out after 10s); 03:07:12.000",
                "-> the pool was cleared at 03:07:12.000 (hello: timed out after 10s) and paused until \
                 03:07:15.000, for 3 s; --clear 1 tells more",
                "clears one at 03:07:12.000 (hello: timed out after 10s); --clear 1",
            ],
        ),
    ] {
        let summary = told(case, &[]);
        let lines: Vec<_> = summary.lines().collect();
        assert!(lines.len() <= 30, "one screen: {summary}");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{summary}");
        let flattened = flat(&summary);
        for expected in expected {
            assert!(flattened.contains(expected), "{expected}: {summary}");
        }
        // The cause is in the first ten lines.
        assert!(lines[..10].iter().any(|line| line.contains("-> ")), "{summary}");
    }
}

/// As in a dump that is written then: what is slow has not ended yet.
#[test]
fn at_the_first_time_out_what_is_slow_is_named() {
    for (case, expected) in [
        ("too-small", "-> more work than connections: 2,900 requests a second then"),
        ("leak", "-> a leak: 9 of 10 connections were checked out since 03:07:01.318"),
        (
            "slow-server",
            "-> slow uses: 13 of 17 held 91 % of the connections' time then; checked out at \
             src/orders.rs:41:32 (8), src/stock.rs:19:24 (4), ",
        ),
        (
            "storm",
            "-> many new connections: 7 were created then, half of them took more than 27.6 ms",
        ),
    ] {
        let summary = told(case, &["--until", "event=ConnectionCheckOutFailed"]);
        assert!(flat(&summary).contains(expected), "{expected}: {summary}");
    }
    let folder = Folder::new();
    let slow = "--connections 50 --tasks 100 --establish-ms 400";
    let slow = folder.record("slow.bson", slow);
    let summary = flat(&good(&["explain", text(&slow), "--until", "at=0.102"]));
    let expected = "-> slow establishment: 2 are being established when the trace ends, the oldest for 101 ms; \
                    none was established before";
    assert!(summary.contains(expected), "{summary}");
}

#[test]
fn one_wait_is_explained_whatever_its_outcome() {
    let waited = |case: &str, waiter: &str| told(case, &["--waiter", waiter]);
    let timed_out = flat(&waited("slow-server", "10204"));
    for expected in [
        "w10204 timed out after 200 ms: from 03:07:10.023 (10.023320 s), step 20397, at \
         src/orders.rs:41:32, until 03:07:10.223",
        "when it came in the way was maxPoolSize: 10 of 10 in use; 11 requests were ahead of it",
        "c1 by w10191 at src/orders.rs:41:32 for 18 ms already, checked in 282 ms later",
        "meanwhile 7 connections became free or established",
        "03:07:10.051 c8 checked in by w10189 at src/stock.rs:19:24 after 48 ms; c8 to w10193",
        "in the end it timed out;",
    ] {
        assert!(timed_out.contains(expected), "{expected}: {timed_out}");
    }
    let served = flat(&waited("storm", "8430"));
    for expected in [
        "got c83 after 199 ms: from 03:07:13.798",
        "maxConnecting: 2 of 2 being established, 80 of 200 connections; 205 requests were ahead of it",
        "… 336 more …",
        "c83 was established, and it got c83; no request was still ahead of it; connection c83 had \
         been created for it 82.8 ms before",
    ] {
        assert!(served.contains(expected), "{expected}: {served}");
    }
    // Requests are numbered from 1, and the last one still waits.
    let requests = findings("leak")["requests"].clone();
    let count = |key: &str| requests[key].as_u64().expect("a number");
    let last = ["servedAtOnce", "servedAfterWait", "failed", "waitingAtEnd"].map(count);
    let leaked = waited("leak", &last.iter().sum::<u64>().to_string());
    let holder = " at src/report.rs:88:27 for ";
    assert!(leaked.contains(holder) && leaked.contains(", not checked in, "), "{leaked}");
    assert!(leaked.contains("still waits at the end of the trace"), "{leaked}");
    let at_once = waited("cleared", "12200");
    assert!(
        at_once.contains("failed: pool cleared (hello: timed out after 10s) at once"),
        "{at_once}"
    );
}

/// The findings in the trace of a case.
fn findings(case: &str) -> Value {
    let told = told(case, &["--json"]);
    assert_eq!(told.lines().count(), 1, "one object");
    serde_json::from_str(&told).expect("JSON")
}

#[test]
fn scripts_get_all_that_was_found() {
    let leak = findings("leak");
    let leaked = leak["leaks"]["leaked"].as_array().expect("a list");
    assert!(!leaked.is_empty() && leaked.iter().all(|it| it["place"] == "src/report.rs:88:27"));
    assert!(leaked.iter().all(|it| it["checkedIn"].is_null() && it["held"].as_f64() > Some(2.0)));
    assert_eq!(leak["start"]["time"], "2026-01-01T03:07:00.000Z");
    let failed = &leak["groups"][0];
    assert_eq!(failed["outcome"], "failed");
    assert!(
        failed["cause"].as_str().is_some_and(|cause| cause.starts_with("a leak: ")),
        "{failed}"
    );
    assert_eq!(failed["count"], leak["requests"]["failed"]);
    let slowest = leak["slowest"].as_array().expect("a list");
    let waited: Vec<_> = slowest.iter().map(|wait| wait["waited"].as_f64()).collect();
    assert!(slowest.len() == 20 && waited.is_sorted_by(|a, b| a >= b), "{waited:?}");
    let cleared = findings("cleared");
    let clear = &cleared["clears"][0];
    assert_eq!([&clear["failedAtOnce"], &clear["interrupted"]], [3_441, 8]);
    assert_eq!(clear["ready"]["at"], 15.0);
}

#[test]
fn requests_that_were_cleared_while_they_waited_have_a_cause() {
    let folder = Folder::new();
    let traffic = "--connections 5 --tasks 40 --failure-every 100 --steps 3000";
    let trace = folder.record("a.bson", traffic);
    let summary = flat(&good(&["explain", text(&trace)]));
    let cause = "-> the pool was cleared at ";
    let group = summary.split("cleared while they waited").nth(1).expect("there are some");
    assert!(group.split(" failed ").next().is_some_and(|it| it.contains(cause)), "{summary}");
}

#[test]
fn a_connection_that_was_held_too_long_is_found_by_name() {
    let reports = of_case("replay", "leak", &["--type", "ReportLeak"]);
    let count = findings("leak")["leaks"]["leaked"].as_array().expect("a list").len();
    assert_eq!(
        reports.lines().filter(|line| line.contains("report c")).count(),
        count,
        "{reports}"
    );
    assert!(
        reports.lines().last().is_some_and(|it| it.ends_with(&format!(", {count} steps shown")))
    );
    let until = of_case("replay", "leak", &["--until", "action=ReportLeak", "--quiet"]);
    assert!(until.ends_with(", stopped by --until\n"), "{until}");
    for (arguments, told) in [
        (["--type", "HeldTooLong"], "; did you mean ReportLeak?"),
        (["--type", "ReportLeek"], "; did you mean ReportLeak?"),
        (["--type", "connectionclosed"], "; did you mean ConnectionClosed?"),
        (["--type", "CheckoutRequest"], "; did you mean CheckOutRequested?"),
        (["--type", "Nothing"], "(Deliver, CloseSocket, …) has this name"),
        (["--until", "event=ConectionClosed"], "; did you mean ConnectionClosed?"),
        (["--until", "action=HeldTooLong"], "; did you mean ReportLeak?"),
    ] {
        let arguments = [&["replay", "a.bson"][..], &arguments].concat();
        refused(&arguments, 2, &format!("{told}; see "));
    }
}

#[test]
fn what_was_shed_or_found_the_queue_full_is_explained() {
    let summary = flat(&told("shedding", &[]));
    for expected in [
        "failed 13,179 shed on standing delay, maxPoolSize: 10 of 10 in use, up to 90.6 ms; \
         03:07:12.111 to 03:07:14.902 -> more work than connections",
        "failed 1,934 at once: the wait queue was full, maxPoolSize: 10 of 10 in use; 03:07:12.048",
        "w20325 90.6 ms 03:07:13.096 shed maxPoolSize: 10 of 10 in use; 171 ahead",
    ] {
        assert!(summary.contains(expected), "{expected}: {summary}");
    }
    for (waiter, expected) in [
        ("20325", "w20325 failed: shed after 90.6 ms: from 03:07:13.096"),
        ("20000", "w20000 failed: wait queue full at once: 03:07:13.039"),
    ] {
        let wait = flat(&told("shedding", &["--waiter", waiter]));
        assert!(wait.starts_with(expected), "{wait}");
    }
}

#[test]
fn what_waits_because_the_pool_backs_off_is_explained() {
    let summary = flat(&told("overloaded", &[]));
    for expected in [
        "failed 4,009 timed out, overload_backoff or adaptive_connecting: 0 being established, 10 of 200 \
         connections, up to 200 ms",
        "failed 1 not established: connection reset during the TLS handshake",
    ] {
        assert!(summary.contains(expected), "{expected}: {summary}");
    }

    let folder = Folder::new();
    let trace = folder.record("trace.bson", "--case overloaded");
    let page = folder.path("picture.html");
    good(&["draw", text(&trace), "--html", text(&page)]);
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("the pool backs off for 57.5 ms: 1 overload"), "no mark of a back-off");
}

#[test]
fn the_longest_waits_are_listed() {
    let slowest = told("storm", &["--slowest", "3"]);
    let lines: Vec<_> = slowest.lines().collect();
    assert_eq!(lines.len(), 4, "{slowest}");
    let first =
        "  w10      200 ms    03:07:00.015  timed out     establishment of its own connection";
    assert!(lines[1].starts_with(first), "{slowest}");
    let all = told("storm", &["--slowest", "100"]);
    assert!(all.lines().count() == 101 && all.starts_with(&slowest), "{all}");
}

#[test]
fn leaks_are_told_from_slow_uses_by_what_happened_next() {
    let leaks = told("leak", &["--leaks"]);
    assert!(leaks.contains(" look leaked: not checked in, and held for longer"), "{leaks}");
    assert!(leaks.contains(", reported at 03:07:"), "{leaks}");
    let slow = told("slow-server", &["--leaks"]);
    assert_eq!(slow.lines().next(), Some("1 only slow: checked in"), "{slow}");
    assert!(
        slow.contains("held for 2.95 s, reported at 03:07:12.961, checked in healthy at"),
        "{slow}"
    );
    assert!(slow.contains("listed are uses of more than 2 s (the trace's leakDetectionThreshold)"));
    let none = told("slow-server", &["--leaks", "--longer-than", "4"]);
    assert_eq!(none, "no connection was held for more than 4 s (as asked)\n");
}

#[test]
fn a_clear_is_told_in_counts() {
    let clear = flat(&told("cleared", &["--clear", "1"]));
    for expected in [
        "clear 1 at 03:07:12.000 (12.000000 s), step 24248: hello: timed out after 10s",
        "before it 10 connections, 8 in use, 0 being established",
        "requests 0 failed that waited; 3,441 failed at once since then, because the pool was paused",
        "operations 8 interrupted (c10 of w12085 after 33.1 ms, ",
        "connections 10 closed (c8 at once, c7 at once, c4 after 40 µs, ",
        "ready again at 03:07:15.000 (15.000000 s), after 3 s; ",
    ] {
        assert!(clear.contains(expected), "{expected}: {clear}");
    }
    let all = told("cleared", &["--clears"]);
    assert!(
        all.starts_with("the pool was cleared 1 time\n  --clear 1   03:07:12.000  3,441 requests")
    );
    assert_eq!(told("leak", &["--clears"]), "the pool was never cleared\n");
}

#[test]
fn only_a_part_of_the_trace_is_counted() {
    let part = told("too-small", &["--from", "5", "--to", "6"]);
    assert!(flat(&part).contains(" 0 failed; at most "), "{part}");
    let until = told("too-small", &["--until", "step=100"]);
    assert!(until.contains(": 100 steps, "), "{until}");
}

#[test]
fn what_is_not_there_is_said() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    for (arguments, expected) in [
        (&["--waiter", "999999"][..], "there is no request w999999"),
        (&["--clear", "999"], "there is no clear 999 of "),
        (&["--until", "waiting>100000"], "the condition of --until never holds"),
    ] {
        refused(&[&["explain", text(&trace)], arguments].concat(), 1, expected);
    }
    let outside = &["explain", text(&trace), "--from", "1000000"];
    refused(outside, 2, "nothing happened in that time: the trace is from ");
    // Of two pools, one may have been at rest.
    let other = folder.traffic("b.bson");
    let two = ["explain", text(&trace), text(&other), "--from", "1000000"];
    assert!(good(&two).contains("requests   0: "), "{}", good(&two));
}

/// A `console` block of the page holds commands after `$`, and the first lines that each prints.
#[test]
fn the_page_shows_what_the_commands_print() {
    let folder = Folder::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/start/problem.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let blocks = page.split("```console\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().expect("it has an end"));
    let mut cases = 0;
    for block in blocks {
        for part in block.split("$ cenote ").skip(1) {
            let mut lines = part.lines();
            let asked = lines.next().expect("a command");
            let arguments: Vec<_> = asked.split(' ').collect();
            let output = command(&arguments).current_dir(&folder.0).output().expect("a process");
            assert!(output.status.success(), "{asked}");
            let printed = String::from_utf8(output.stdout).expect("text");
            let mut printed = printed.lines();
            for expected in lines.take_while(|line| *line != "…") {
                assert_eq!(printed.next(), Some(expected), "{asked}");
            }
            cases += usize::from(asked.starts_with("record "));
        }
    }
    assert_eq!(cases, 5);
}

//! The checker on streams that are good and streams that are broken.

mod log;
mod rules;
mod words;

use std::time::Duration;

use cenote_core::pool::{CloseReason, Event};

use self::words::{is_good, json, judge};
use super::{Checker, Limits, Line, check};
use crate::event_json;

#[test]
fn a_whole_life() {
    is_good(
        "pool
        started
        failed connectionError
        ready
        started
        created 1
        established 1
        out 1
        started
        created 2
        lost 2
        failed connectionError reset
        in 1
        started
        out 1
        cleared
        started
        failed connectionError Connection_pool_for_a:1_was_cleared_because_another_operation_failed
        in 1
        closed 1 stale
        ready
        started
        created 3
        established 3
        out 3
        started
        created 4
        closed 4 poolClosed
        failed poolClosed
        closed
        started
        failed poolClosed
        in 3
        closed 3 poolClosed",
    );
}

/// Each pool has a story of its own, told in between.
#[test]
fn pools_are_told_apart_by_their_addresses() {
    let words = ["pool", "ready", "created 1", "established 1"];
    let lines = words.map(|words| {
        let line = json(words);
        format!("{line}\n{}", line.replace("a:1", "b:2"))
    });
    let report = check(lines.join("\n").as_bytes(), Limits::default()).expect("events");
    assert!(report.is_good(), "{report}");
    assert_eq!((report.pools, report.connections, report.events), (2, 2, 8));
}

#[test]
fn what_is_no_event_is_told_with_its_line() {
    let good = json("pool");
    let trouble = |line: &str| {
        let text = format!("{good}\n\n{line}");
        check(text.as_bytes(), Limits::default()).expect_err("no event").to_string()
    };
    assert!(trouble("nonsense").starts_with("line 3: this is no event: expected"));
    assert!(trouble(r#"{"type":"ConnectionCreated","connectionId":-1}"#).contains("line 3"));
    let unknown = trouble(r#"{"type":"ConnectionLost"}"#);
    assert!(unknown.contains("unknown type \"ConnectionLost\""), "{unknown}");
    assert_eq!(
        trouble(r#"{"type":"ConnectionReady"}"#),
        "line 3: this ConnectionReady has no connectionId"
    );
    let empty = check("\n".as_bytes(), Limits::default()).expect_err("nothing").to_string();
    assert_eq!(empty, "there are no events");
}

/// What a pool told is the same as the line about it.
#[test]
fn an_event_is_its_line() {
    let address = "a:1".parse().expect("an address");
    let at = Duration::from_millis(1500);
    let event = Event::<&str>::ConnectionClosed {
        connection_id: 7,
        reason: CloseReason::Error,
        error: Some("reset"),
    };
    let line = serde_json::to_string(&event_json::line(&event, &address, at)).expect("plain data");
    assert_eq!(Line::of(&event, &address, at), Line::parse(&line).expect("a line"));
    let mut checker = Checker::new(Limits::default());
    checker.tell(&Line::of(&event, &address, at));
    let rules: Vec<_> = checker.finish().findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["EV-10", "EV-26"]);
}

/// A pool that is wrong all along fills no memory.
#[test]
fn findings_are_counted_and_not_all_kept() {
    let words = format!("pool\n{}", "created 9\nlost 9\n".repeat(2000));
    let report = judge(&words);
    assert_eq!(report.findings.len(), super::MAX_FINDINGS);
    assert!(report.broken >= 4000);
    assert!(!report.is_good());
}

//! Streams in words instead of JSON: a line an event, as `created 1`, `closed 1 stale`,
//! `failed timeout`.

use crate::{Limits, Report, check};

/// The JSON of an event that was written in words.
pub(super) fn json(words: &str) -> String {
    let words: Vec<_> = words.split(' ').collect();
    let (kind, more) = match words[..] {
        ["pool", options] => ("ConnectionPoolCreated", format!(r#""options":{options}"#)),
        ["pool"] => ("ConnectionPoolCreated", r#""options":{}"#.to_owned()),
        ["nameless"] => ("ConnectionPoolCreated", r#""options":null"#.to_owned()),
        ["options", options] => ("PoolOptionsChanged", format!(r#""options":{options}"#)),
        ["child"] => ("PoolResetAfterFork", String::new()),
        ["ready"] => ("ConnectionPoolReady", String::new()),
        ["cleared"] => ("ConnectionPoolCleared", INTERRUPT.replace('?', "false")),
        ["cleared", "silently"] => ("ConnectionPoolCleared", String::new()),
        ["cleared", "service"] => ("ConnectionPoolCleared", service("false")),
        ["cleared", "service", "loudly"] => ("ConnectionPoolCleared", service("true")),
        ["closed"] => ("ConnectionPoolClosed", String::new()),
        ["created", id] => ("ConnectionCreated", connection(id)),
        ["established", id] => ("ConnectionReady", connection(id) + r#","durationMS":0"#),
        ["lost", id] => {
            ("ConnectionClosed", connection(id) + r#","reason":"error","error":"reset""#)
        }
        ["lost", id, reason] => {
            let reason = format!(r#","reason":"{reason}","error":"reset""#);
            ("ConnectionClosed", connection(id) + &reason)
        }
        ["closed", id, reason] => {
            ("ConnectionClosed", connection(id) + &format!(r#","reason":"{reason}""#))
        }
        ["started"] => ("ConnectionCheckOutStarted", String::new()),
        ["failed", reason] => {
            ("ConnectionCheckOutFailed", format!(r#""reason":"{reason}","durationMS":0"#))
        }
        ["failed", reason, error] => (
            "ConnectionCheckOutFailed",
            format!(r#""reason":"{reason}","error":"{}","durationMS":0"#, error.replace('_', " ")),
        ),
        ["out", id] => ("ConnectionCheckedOut", connection(id) + r#","durationMS":0"#),
        ["out", id, duration] => {
            ("ConnectionCheckedOut", connection(id) + &format!(r#","durationMS":{duration}"#))
        }
        ["out", id, "without", "duration"] => ("ConnectionCheckedOut", connection(id)),
        ["in", id] => ("ConnectionCheckedIn", connection(id)),
        ["drains", id] => ("ConnectionPendingResponseStarted", connection(id)),
        ["drained", id] => {
            ("ConnectionPendingResponseSucceeded", connection(id) + r#","durationMS":0"#)
        }
        ["drained", id, "not", reason] => {
            let reason = format!(r#","reason":"{reason}","durationMS":0"#);
            ("ConnectionPendingResponseFailed", connection(id) + &reason)
        }
        ["drained", id, "without", "duration"] => {
            ("ConnectionPendingResponseSucceeded", connection(id))
        }
        _ => panic!("{words:?}"),
    };
    let comma = if more.is_empty() { "" } else { "," };
    format!(r#"{{"type":"{kind}","address":"a:1"{comma}{more}}}"#)
}

const INTERRUPT: &str = r#""interruptInUseConnections":?"#;

fn service(interrupt: &str) -> String {
    format!(r#""serviceId":"0a","interruptInUseConnections":{interrupt}"#)
}

fn connection(id: &str) -> String {
    format!(r#""connectionId":{id}"#)
}

pub(super) fn judge(words: &str) -> Report {
    let lines: Vec<_> =
        words.lines().map(str::trim).filter(|line| !line.is_empty()).map(json).collect();
    check(lines.join("\n").as_bytes(), Limits::default()).expect("events")
}

/// The rules that a stream breaks, with the numbers of their lines.
pub(super) fn broken(words: &str) -> Vec<(u64, &'static str)> {
    judge(words).findings.iter().map(|finding| (finding.line, finding.rule)).collect()
}

pub(super) fn is_good(words: &str) {
    let report = judge(words);
    assert!(report.is_good(), "{words}\n{report}");
}

const READY: &str = "pool\nready\n";

/// What comes after `READY`.
pub(super) fn broken_after(words: &str) -> Vec<(u64, &'static str)> {
    broken(&format!("{READY}{}", words.trim().replace(", ", "\n")))
}

pub(super) fn is_good_after(words: &str) {
    is_good(&format!("{READY}{}", words.trim().replace(", ", "\n")));
}

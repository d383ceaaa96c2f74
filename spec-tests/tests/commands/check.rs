//! `cenote check`, as scripts use it.

use std::io::Write;
use std::process::{Output, Stdio};

use super::{command, text};

const GOOD: &str = r#"
{"at":0,"type":"ConnectionPoolCreated","address":"a:1","options":{"maxPoolSize":1}}
{"at":0.1,"type":"ConnectionPoolReady","address":"a:1"}
{"at":0.1,"type":"ConnectionCheckOutStarted","address":"a:1"}
{"at":0.1,"type":"ConnectionCreated","address":"a:1","connectionId":1}
{"at":0.2,"type":"ConnectionReady","address":"a:1","connectionId":1,"durationMS":100}
{"at":0.2,"type":"ConnectionCheckedOut","address":"a:1","connectionId":1,"durationMS":100}
"#;
const TWICE: &str = r#"{"at":0.3,"type":"ConnectionCreated","address":"a:1","connectionId":2}"#;

fn check(arguments: &[&str], events: &str) -> Output {
    let mut child = command(&["check"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child process");
    // It may have refused its arguments already.
    let _ = child.stdin.take().expect("a pipe").write_all(events.as_bytes());
    child.wait_with_output().expect("a child process")
}

#[test]
fn a_good_stream_is_0() {
    let output = check(&["-"], GOOD);
    let expected = "6 events, 1 pools, 1 connections, 1 check-outs: no rule is broken\n";
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), expected));
}

#[test]
fn a_broken_rule_is_1_with_its_line() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{GOOD}{TWICE}").unwrap();
    let path = file.path().to_str().unwrap();
    let output = check(&[path], "");
    assert_eq!(output.status.code(), Some(1));
    let expected = "line 8: T-14: connection 2 is created, but 1 of 1 are there\n";
    assert!(text(&output.stdout).starts_with(expected), "{output:?}");
    // It is what one allows.
    assert_eq!(check(&[path, "--max", "2"], "").status.code(), Some(0));
    assert_eq!(check(&[path, "--max", "0", "--connecting", "1"], "").status.code(), Some(0));

    let output = check(&[path, "--json"], "");
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["good"], false);
    assert_eq!(
        (&json["findings"][0]["line"], &json["findings"][0]["rule"]),
        (&8.into(), &"T-14".into())
    );
}

#[test]
fn many_findings_are_a_line_for_each_rule() {
    let mut events = format!("{GOOD}{TWICE}\n");
    for id in 3..=1500 {
        events += &TWICE.replace("\"connectionId\":2", &format!("\"connectionId\":{id}"));
        events += "\n";
    }
    events += r#"{"at":0.3,"type":"ConnectionCheckedIn","address":"a:1","connectionId":4711}"#;
    let output = check(&["-"], &events);
    let lines: Vec<_> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(output.status.code(), Some(1));
    assert!(lines.len() < 10, "{lines:#?}");
    let first = "line 8: T-14: connection 2 is created, but 1 of 1 are there (and 1498 times more)";
    assert_eq!(lines[0], first);
    // Also of a rule that is broken after the first thousand findings.
    assert!(lines.iter().any(|line| line.contains("connection 4711")), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("rules are broken")), "{lines:#?}");
    let all = text(&check(&["-", "--all"], &events).stdout);
    assert!((1000..1010).contains(&all.lines().count()), "{}", all.lines().count());
    let json = check(&["-", "--json"], &events);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["rules"]["T-14"], 1499);
}

#[test]
fn what_cannot_be_read_is_2_with_one_line() {
    let nonsense = check(&["-"], "nonsense");
    let missing = check(&["/nowhere/events.jsonl"], "");
    for (output, says) in [
        (nonsense, "cenote: -: there are no events in JSON"),
        (missing, "cenote: /nowhere/events.jsonl: No such file"),
        (check(&["-"], ""), "cenote: -: there are no events"),
    ] {
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        assert!(error.starts_with(says), "{error}");
    }
    assert_eq!(check(&["-", "--max", "many"], GOOD).status.code(), Some(2));
}

//! The commands `cenote record` and `cenote replay`, and what holds for every command, as people and
//! scripts use them.

mod bad_input;
mod command_line;
mod explain;
mod perfetto;
mod topology;
mod what_if;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cenote_replay::history::History;
use tempfile::TempDir;

use super::{bad, cenote, command, good, refused};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a folder of our own");
        path
    }

    /// A trace, or the folder of several, by these options of `cenote record`.
    fn record(&self, name: &str, options: &str) -> PathBuf {
        let path = self.path(name);
        let arguments: Vec<_> =
            ["record", text(&path)].into_iter().chain(options.split(' ')).collect();
        good(&arguments);
        path
    }

    fn traffic(&self, name: &str) -> PathBuf {
        self.record(name, TRAFFIC)
    }
}

/// With a leak, failures, and too many tasks.
const TRAFFIC: &str =
    "--steps 3000 --connections 5 --tasks 40 --leak-every 100 --failure-every 500";

/// The text with one space wherever it has some, or a new line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of plain letters")
}

#[test]
fn a_trace_is_printed_a_line_a_step() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    let printed = good(&["replay", text(&trace)]);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 3000 + 3);
    assert_eq!(
        lines[0],
        "a trace of db.example.com:27017, recorded by cenote 0.1.0, from a new pool at 0.000000000s"
    );
    assert!(
        lines[6].starts_with("      5  0.001000000s  Ready  ->  PoolReady  |  ready  gen 0 | ")
    );
    assert!(lines[3002].starts_with("3,000 steps until "), "{}", lines[3002]);
    assert_eq!(good(&["replay", text(&trace), "--quiet"]).lines().count(), 1);
}

#[test]
fn steps_are_filtered() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    let steps = |more: &[&str]| {
        let mut arguments = vec!["replay", text(&trace)];
        arguments.extend(more);
        let printed = good(&arguments);
        let lines = printed.lines().skip(2).map(ToOwned::to_owned);
        let mut lines: Vec<String> = lines.collect();
        lines.pop();
        lines
    };
    let all = steps(&[]);
    let third = steps(&["--connection", "3"]);
    assert!(!third.is_empty() && third.iter().all(|line| line.contains("c3")), "{third:#?}");
    assert!(third.len() < all.len());
    let waiter = steps(&["--waiter", "7"]);
    assert!(waiter[0].contains("CheckOutRequested w7 "), "{waiter:#?}");
    assert!(waiter.iter().any(|line| line.contains("w7 gets")), "{waiter:#?}");
    assert!(waiter.last().is_some_and(|line| line.contains("CheckedIn")), "{waiter:#?}");
    let clears = steps(&["--type", "Clear"]);
    assert!(!clears.is_empty() && clears.iter().all(|line| line.contains(" Clear ")));
    let failed = steps(&["--type", "ConnectionCheckOutFailed"]);
    assert!(!failed.is_empty() && failed.iter().all(|line| line.contains("CheckOutFailed")));
    let early = steps(&["--from", "0.001", "--to", "0.002"]);
    assert!(early.iter().all(|line| line.contains("  0.001") || line.contains("  0.002")));
    assert_eq!(steps(&["--connection", "3", "--to", "0"]).len(), 0);
}

#[test]
fn it_stops_where_a_condition_holds() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    let stopped = good(&["replay", text(&trace), "--until", "waiting>3"]);
    let lines: Vec<_> = stopped.lines().rev().take(2).collect();
    assert!(lines[0].ends_with(", stopped by --until"));
    assert!(lines[1].ends_with("waiting 4"), "{}", lines[1]);
    let stopped = good(&["replay", text(&trace), "--until", "step=7"]);
    assert!(stopped.contains("\n      7  ") && !stopped.contains("\n      8  "));
    let (status, error) = bad(&["replay", text(&trace), "--quiet", "--until", "waiting>100000"]);
    assert_eq!((status, error.as_str()), (1, "cenote: the condition of --until never holds"));
    assert_eq!(cenote(&["replay", text(&trace), "--until", "nonsense"]).status.code(), Some(2));
}

#[test]
fn times_are_those_of_the_wall_clock_too() {
    let folder = Folder::new();
    let trace = folder.record("cleared.bson", "--case cleared");
    let replay = |arguments: &[&str]| good(&[&["replay", text(&trace)], arguments].concat());
    let part = ["--from", "03:07:12", "--to", "2026-01-01T03:07:12", "--type", "Clear"];
    let lines = replay(&part);
    let lines: Vec<_> = lines.lines().collect();
    assert!(lines[0].ends_with(" from a new pool at 0.000000000s, 2026-01-01 03:07:00 UTC"));
    assert!(lines[2].starts_with("  24248  12.000000000s  03:07:12.000  Clear interrupting"));
    assert_eq!(lines.len(), 4);
    let until = replay(&["--until", "at=05:07:15", "--type", "Ready", "--utc-offset", "+02:00"]);
    assert!(until.contains("s  05:07:15.000  Ready  ->  PoolReady"), "{until}");
    let json = replay(&["--json", "--until", "step=1"]);
    assert!(json.contains(r#""time":"2026-01-01T03:07:00."#), "{json}");

    let plain = folder.traffic("a.bson");
    for arguments in [["--from", "03:07:12"], ["--until", "at=03:07:12"], ["--to", "03:07:12"]] {
        let expected =
            "the trace does not say when it was recorded, so `03:07:12.000` means nothing";
        refused(&[&["replay", text(&plain)], &arguments[..]].concat(), 2, expected);
    }
}

/// With the requests that wait when it begins.
#[test]
fn a_part_of_a_trace_is_drawn() {
    let folder = Folder::new();
    let trace = folder.record("a.bson", "--case too-small");
    let page = folder.path("page.html");
    let part = |from, to| ["draw", text(&trace), "--html", text(&page), "--from", from, "--to", to];
    let until = good(&["draw", text(&trace), "--html", text(&page), "--until", "step=100"]);
    assert!(until.starts_with("100 steps drawn in "), "{until}");
    let told = good(&part("12.9", "03:07:13.9"));
    let steps = told.split(' ').next().and_then(|steps| steps.parse::<u64>().ok());
    assert!(steps.is_some_and(|steps| (1_000..10_000).contains(&steps)), "{told}");
    let page = std::fs::read_to_string(&page).expect("a page");
    let time = |name: &str| {
        let (_, rest) = page.split_once(&format!(r#","{name}":"#)).expect("it is told");
        rest.split(',').next().and_then(|time| time.parse::<u64>().ok()).expect("a time")
    };
    assert!((12_900..12_910).contains(&(time("start") / 1_000_000)), "{}", time("start"));
    assert!((13_900..13_910).contains(&(time("end") / 1_000_000)), "{}", time("end"));
    refused(&part("16", "17"), 2, "nothing happened in that time: the trace is from 03:07:00.000");
}

#[test]
fn a_refused_input_is_a_failure() {
    let folder = Folder::new();
    let trace = folder.record("twice.bson", "--steps 500 --tasks 6 --check-in-twice");
    let page = folder.path("twice.html");
    for arguments in [
        &["replay"][..],
        &["replay", "--quiet"],
        &["replay", "--json"],
        &["replay", "--step"],
        &["explain"],
        &["draw", "--html", text(&page)],
    ] {
        let expected = "1 input was refused, a bug of the program that recorded: `cenote replay --shrink misuse` finds";
        refused(&[arguments, &[text(&trace)]].concat(), 1, expected);
    }
}

#[test]
fn machines_read_json() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    let printed = good(&["replay", text(&trace), "--json"]);
    assert_eq!(printed.lines().count(), 3000);
    for line in printed.lines() {
        let step: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(step["step"].is_u64() && step["at"].is_f64() && step["state"]["total"].is_u64());
        assert!(step["input"]["type"].is_string());
    }
    let events = good(&["replay", text(&trace), "--json", "--events"]);
    assert!(events.starts_with(r#"{"at":0.0,"type":"ConnectionPoolCreated","address":"#));
    for line in events.lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let name = event["type"].as_str().expect("a type");
        assert!(cenote::event_json::TYPES.contains(&name), "{name}");
    }
}

#[test]
fn two_traces_are_compared() {
    let folder = Folder::new();
    let one = folder.traffic("one.bson");
    let same = good(&["replay", text(&one), "--diff", text(&folder.traffic("two.bson"))]);
    assert_eq!(same, "3000 steps are the same\n");
    let other = folder.record("three.bson", &format!("{TRAFFIC} --seed 9"));
    let output = cenote(&["replay", text(&one), "--diff", text(&other)]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).expect("text");
    assert!(shown.contains("different inputs:\n- ") || shown.contains("at different times:\n- "));
}

/// What is printed for commands of `--step`.
fn stepped(trace: &Path, commands: &str) -> String {
    let mut child = command(&["replay", text(trace), "--step"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process");
    child.stdin.take().expect("a pipe").write_all(commands.as_bytes()).expect("a pipe");
    let output = child.wait_with_output().expect("a child process");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn one_goes_through_it_by_hand() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    let commands = "n\n\nnext 2\nback\nuntil waiting>3\nc\nw\ngo 2500\nb 1200\nstate\n\
                    since input=Ready\ngo 9999\nn\nfly\nn x\nuntil nothing\nq\nn\n";
    let shown = stepped(&trace, commands);
    let numbers: Vec<u64> = shown
        .lines()
        .filter(|line| line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4, 3, 11, 2500, 1300, *numbers.get(8).expect("one"), 3000]);
    for expected in [
        "c1 pending for w5 since 0.001020000s",
        "waits for c1 to be established",
        "maxConnecting is reached",
        "the end",
        "`fly` is not a command; `help` lists them",
        "`x` is not a number of steps",
        "`nothing` is not a condition",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn a_long_trace_is_shrunk_to_what_shows_a_bug() {
    let folder = Folder::new();
    let planted = folder.record("planted.bson", "--steps 4000 --tasks 6 --check-in-twice");
    let shrunk = folder.path("shrunk.bson");
    let shrink = |trace: &Path, property: &str| {
        let told = good(&["replay", text(trace), "--shrink", property, "--out", text(&shrunk)]);
        let file = std::fs::File::open(&shrunk).expect("a file");
        let (history, problem) = History::read(file).expect("a trace");
        assert!(problem.is_none() && history.inputs.len() <= 20, "{told}");
        history
    };
    assert!(shrink(&planted, "misuse").inputs.last().is_some_and(|entry| entry.refused));

    let trace = folder.traffic("busy.bson");
    shrink(&trace, "waiting>4");
    good(&["replay", text(&shrunk), "--until", "waiting>4"]);
    let never = ["replay", text(&trace), "--shrink", "waiting>100000", "--out", text(&shrunk)];
    refused(&never, 1, "the trace does not show");
}

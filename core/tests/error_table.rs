//! Prints what follows from every stage and kind of failure, and holds `docs/errors.md` to it.
//!
//! How: the page is generated from the code and compared with the file. After a wanted change,
//! `CENOTE_BLESS=1 cargo test -p cenote-core` rewrites the file, and the diff is the review.

#![cfg(feature = "std")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use cenote_core::error::{CommandError, ConnectionError, RetryWrites, Stage};
use cenote_core::sdam::{
    Check, Context, PoolVerdict, ServerVerdict, Verdict, monitor_verdict, verdict,
};

// PS-13, PO-13, AU-03, TL-08, SX-06
#[test]
#[expect(clippy::disallowed_methods, reason = "a test is told by its environment to rewrite")]
fn the_page_tells_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let page = page();
    if std::env::var_os("CENOTE_BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs/ can be written");
    }
    let Ok(file) = std::fs::read_to_string(&path) else {
        assert!(!path.parent().is_some_and(Path::exists), "docs/errors.md is missing");
        return; // a published crate comes without the book
    };
    assert_eq!(file, page, "run with CENOTE_BLESS=1 and review the diff");
}

fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str(HEADER);
    for stage in Stage::ALL {
        for (name, error) in failures(stage) {
            write_row(&mut page, &format!("{stage} | {name}"), &error);
        }
    }
    page.push_str(COMMANDS);
    page.push_str(HEADER);
    for stage in [Stage::Hello, Stage::Authentication, Stage::Operation] {
        for (name, error) in refusals(stage) {
            write_row(&mut page, &format!("{stage} | {name}"), &error);
        }
    }
    page.push_str(MONITOR);
    for (name, error) in failures(Stage::Hello) {
        let verdict = tell(monitor_verdict(&error));
        writeln!(page, "| {name} | {verdict} |").expect("a String takes everything");
    }
    page
}

fn write_row(page: &mut String, what: &str, error: &ConnectionError) {
    let labels: Vec<&str> = error.labels(RetryWrites::Enabled).map(short).collect();
    let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(" ") };
    let retryable = if error.is_retryable() { "yes" } else { "no" };
    let discovered = tell(verdict(&context(false), error));
    let balanced = tell(verdict(&context(true), error));
    writeln!(page, "| {what} | {labels} | {retryable} | {discovered} | {balanced} |")
        .expect("a String takes everything");
}

fn short(label: &str) -> &str {
    match label {
        "SystemOverloadedError" => "overloaded",
        "RetryableError" => "retryable",
        "RetryableWriteError" => "retryable-write",
        other => other,
    }
}

fn tell(verdict: Verdict) -> String {
    let server = match verdict.server {
        ServerVerdict::Keep => None,
        ServerVerdict::Unknown { .. } => Some("Unknown"),
    };
    let pool = match verdict.pool {
        PoolVerdict::Keep => None,
        PoolVerdict::Clear { interrupt: false } => Some("clear"),
        PoolVerdict::Clear { interrupt: true } => Some("clear with interrupt"),
        PoolVerdict::ClearService => Some("clear the service"),
    };
    let check = match verdict.check {
        Check::Keep => None,
        Check::Request => Some("check now"),
        Check::Cancel => Some("cancel the check"),
    };
    let parts: Vec<&str> = [server, pool, check].into_iter().flatten().collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn context(load_balanced: bool) -> Context {
    Context { load_balanced, current_generation: true, topology_version: None }
}

fn failures(stage: Stage) -> [(&'static str, ConnectionError); 6] {
    [
        ("network", ConnectionError::network(stage, "connection reset")),
        ("timeout", ConnectionError::timeout(stage, Duration::from_secs(10))),
        ("command", refusal(stage, 18, &[])),
        ("protocol", ConnectionError::protocol(stage, "not a reply")),
        ("configuration", ConnectionError::configuration(stage, "no such mechanism")),
        ("local", ConnectionError::local(stage, "this process cannot open more files")),
    ]
}

fn refusals(stage: Stage) -> [(&'static str, ConnectionError); 5] {
    [
        ("10107 not writable primary", refusal(stage, 10107, &[])),
        ("189 primary stepped down", refusal(stage, 189, &[])),
        ("91 shutdown in progress", refusal(stage, 91, &[])),
        ("11600 interrupted at shutdown", refusal(stage, 11600, &[])),
        ("462 labelled by the server", refusal(stage, 462, &OVERLOAD)),
    ]
}

fn refusal(stage: Stage, code: i32, labels: &[&str]) -> ConnectionError {
    let mut refusal = CommandError::new(code, "no");
    refusal.labels = labels.iter().map(|label| (*label).to_owned()).collect();
    ConnectionError::command(stage, refusal)
}

const OVERLOAD: [&str; 2] = ["SystemOverloadedError", "RetryableError"];

const INTRODUCTION: &str = "\
# Errors of a connection and their effects

<!-- Generated by core/tests/error_table.rs. Rewrite with CENOTE_BLESS=1 cargo test -p cenote-core. -->

A connection fails at a *stage* with a *kind* of failure. Labels, retries and the verdict of SDAM (Server Discovery and
Monitoring) follow from the two. The rules are ER-21, ER-22, ER-30 to ER-36, SD-20 to SD-31 and LB-20 to LB-22.

* **Labels** are those of the failed operation: `overloaded` is `SystemOverloadedError`, `retryable` is
  `RetryableError`, `retryable-write` is `RetryableWriteError` (only with `retryWrites=true`).
* **Retry** says whether an operation that may safely run twice should be retried.
* **Verdict** is the effect on the server's description, its pool and its monitor, if the failed connection has the
  pool's generation and the error is new. An error of another generation, or with a topology version that the description
  already has, has no effect.
* The failed connection itself is closed, whatever the verdict. Only a refused command, and a command that was never sent,
  leave it healthy.
* Pool errors (closed, cleared, wait-queue timeout) are not in the table: they never reach SDAM.

Some combinations do not occur (a certificate has no timeout), but the functions are total, so they have a row.

Where the specifications leave room:

* An unlabelled failure to establish a connection clears the pool whatever its kind, a change of the server's state
  included, although the same code on an established connection might not.
* A check in progress is cancelled when a *network* error makes the server Unknown. A refused password has no
  bearing on the monitor's connection.
* The label decides, whatever its origin: a refusal that the server itself labels as overload has no effect, even if
  its code reports a change of state.
* A protocol violation on an established connection affects only that connection.
* A TLS handshake that the server ends with an alert, and a port that speaks no TLS, are protocol errors of the TLS
  handshake, also when the alert arrives while hello is awaited, as with TLS 1.3. Only what is wrong with the server's
  certificate is TLS verification.

* A *local* error is a shortage in this process or its machine while a connection is opened: file descriptors, memory, local
  ports, threads. The server was not asked, so nothing follows for it; a monitor that cannot open its connection leaves a
  known server as it is.

## Every stage and kind

";

const HEADER: &str = "\
| stage | kind | labels | retry | verdict | verdict, load balanced |
|---|---|---|---|---|---|
";

const COMMANDS: &str = "
## Refusals by code

The code decides; the message counts only where there is no code. `writeConcernError` counts as a refusal, `writeErrors` do
not.

";

const MONITOR: &str = "
## Failed checks of a monitor

Labels have no effect here. There are no monitors behind a load balancer.

| kind | verdict |
|---|---|
";

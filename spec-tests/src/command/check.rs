//! `cenote check EVENTS`

use std::io::BufReader;
use std::path::PathBuf;

use cenote_check::{Limits, Report};
use serde_json::json;

use super::Failure;
use super::input::{at, is_trace, open};
use super::output::print;

/// Arguments of `cenote check`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// File with one event per line, as `--events` writes it, or a driver's log of the component `connection`; `-` is
    /// standard input
    events: PathBuf,
    /// maxPoolSize, if it differs from the options in the events; 0 is no limit
    #[arg(long, value_name = "CONNECTIONS")]
    max: Option<u32>,
    /// maxConnecting, if it differs from the options in the events
    #[arg(long, value_name = "CONNECTIONS")]
    connecting: Option<u32>,
    /// Print each finding, the first 1,000 of them, instead of the first one of each rule
    #[arg(long)]
    all: bool,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// Judges the events, and prints a line for each rule that is broken, or with `--all` for each finding.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let path = &arguments.events;
    if is_trace(path)? {
        return Err(at(path)(
            "this is a trace: check what `cenote replay TRACE --json --events` prints of it",
        ));
    }
    let limits = Limits { max: arguments.max, connecting: arguments.connecting };
    let report = cenote_check::check(BufReader::new(open(path)?), limits).map_err(at(path))?;
    if arguments.json {
        print(format_args!("{:#}\n", to_json(&report)))?;
    } else if arguments.all {
        print(&report)?;
    } else {
        print(report.by_rule())?;
    }
    Ok(report.is_good())
}

fn to_json(report: &Report) -> serde_json::Value {
    let findings = report
        .findings
        .iter()
        .map(|finding| json!({ "line": finding.line, "rule": finding.rule, "what": finding.what }));
    json!({
        "good": report.is_good(),
        "broken": report.broken,
        "rules": report.rules,
        "events": report.events,
        "pools": report.pools,
        "connections": report.connections,
        "checkOuts": report.check_outs,
        "findings": findings.collect::<Vec<_>>(),
    })
}

//! `cenote check EVENTS`

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::json;
use thiserror::Error;

use cenote_check::{Limits, Report, Unreadable};

/// Arguments of `cenote check`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// File with one event per line, as `--events` writes it; `-` is standard input
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

/// Why there is nothing to judge.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Trouble {
    /// No such file, or one that must not be read.
    #[error("{path}: {source}")]
    Open {
        /// As it was given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that holds something else.
    #[error("{path}: {source}")]
    Read {
        /// As it was given.
        path: PathBuf,
        /// Where and why.
        source: Unreadable,
    },
}

/// Judges the events, and prints a line for each rule that is broken, or with `--all` for each finding.
///
/// # Errors
///
/// A file that cannot be read, or that holds something else than events.
pub fn run(arguments: &Arguments) -> Result<bool, Trouble> {
    let path = &arguments.events;
    let limits = Limits { max: arguments.max, connecting: arguments.connecting };
    let report = cenote_check::check(open(path)?, limits);
    let report = report.map_err(|source| Trouble::Read { path: path.clone(), source })?;
    if arguments.json {
        println!("{:#}", to_json(&report));
    } else if arguments.all {
        print!("{report}");
    } else {
        print!("{}", report.by_rule());
    }
    Ok(report.is_good())
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Trouble> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path);
    let file = file.map_err(|source| Trouble::Open { path: path.to_owned(), source })?;
    Ok(Box::new(BufReader::new(file)))
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

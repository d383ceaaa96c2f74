//! `cenote-lab explore`

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;

use super::{interrupts, print};
use crate::explore::{self, Configuration, Report};

/// Arguments of `cenote-lab explore`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Maximum length of a sequence; each more input takes about three times as long
    #[arg(long, allow_negative_numbers = true, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// Number of configurations to explore at once [default: number of cores]
    #[arg(long, allow_negative_numbers = true)]
    threads: Option<NonZeroUsize>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Explores, and prints how many states were reached and judged; Ctrl-C ends it, and prints what was.
///
/// # Errors
///
/// When signals cannot be heard, or nothing can be printed.
pub fn run(arguments: &Arguments) -> io::Result<bool> {
    let is_interrupted = interrupts()?;
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = arguments.threads.unwrap_or_else(cores).get();
    let all = Configuration::standard();
    let report = explore::explore_until(&all, arguments.depth, threads, &is_interrupted);
    let is_whole = !is_interrupted.load(Ordering::Relaxed);
    if arguments.json {
        print(format_args!("{:#}\n", json(&report, is_whole)))?;
    } else {
        print(&report)?;
        if !is_whole {
            let (begun, all) = (report.lines.len(), all.len());
            let each = "configurations, each to the depth in its line";
            print(format_args!("interrupted: {begun} of {all} {each}\n"))?;
        }
    }
    Ok(report.failures().next().is_none())
}

fn json(report: &Report, is_whole: bool) -> serde_json::Value {
    let lines = report.lines.iter().map(|line| {
        serde_json::json!({
            "configuration": line.name,
            "depth": line.depth,
            "states": line.states,
            "transitions": line.transitions,
            "refusals": line.refusals,
            "failure": line.failure.as_ref().map(ToString::to_string),
        })
    });
    serde_json::json!({
        "states": report.states(),
        "judged": report.judged(),
        "interrupted": !is_whole,
        "configurations": lines.collect::<Vec<_>>(),
    })
}
